from __future__ import annotations

import tomllib
from dataclasses import asdict
from importlib.resources import files

import pytest

from clustering.errors import CalibrationError
from clustering.settings import DEFAULT_MODEL
from clustering.stories.calibration import Calibration, load_calibration

VALUES = {
    "match": 0.4,
    "attach": 0.3,
    "link": 0.5,
    "merge": 0.6,
    "story_gap_hours": 18.0,
    "story_age_hours": 36.0,
    "centroid_members": 3,
    "neighbours": 10,
    "time_penalty": 0.05,
    "language_penalty": 0.06,
    "chain_slack": 0.1,
    "match_cohesion_penalty": 0.2,
    "merge_cohesion_penalty": 0.3,
    "merge_size_penalty": 0.02,
    "cohesion_prior": 0.5,
    "event_link": 0.55,
    "event_gap_hours": 168.0,
    "event_time_penalty": 0.05,
}


def written(tmp_path, **changes):
    values = {key: value for key, value in (VALUES | changes).items() if value is not None}
    path = tmp_path / "own.calibration.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
    return path


def test_a_file_is_read_as_it_stands(tmp_path):
    assert asdict(load_calibration("any", written(tmp_path))) == VALUES


def test_the_default_model_has_a_calibration():
    shipped = files("clustering.models").joinpath(f"{DEFAULT_MODEL}.calibration.toml")
    values = tomllib.loads(shipped.read_text(encoding="utf-8"))
    assert asdict(load_calibration(DEFAULT_MODEL)) == values


def test_whole_numbers_stand_for_hours_too(tmp_path):
    found = load_calibration("any", written(tmp_path, story_gap_hours="24"))
    assert found.story_gap_hours == 24.0


def test_a_model_without_a_calibration_is_refused_by_name():
    with pytest.raises(CalibrationError, match=r"no calibration for no-such-model .*--calibration"):
        load_calibration("no-such-model")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CalibrationError, match=r"gone\.toml"):
        load_calibration(DEFAULT_MODEL, tmp_path / "gone.toml")


@pytest.mark.parametrize("key", sorted(VALUES))
def test_a_missing_key_is_named(tmp_path, key):
    with pytest.raises(CalibrationError, match=f"{key} is missing"):
        load_calibration("any", written(tmp_path, **{key: None}))


def test_an_unknown_key_is_named_with_those_that_are_known(tmp_path):
    with pytest.raises(CalibrationError, match=r"unknown key matsch; known are .*match"):
        load_calibration("any", written(tmp_path, matsch=0.4))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("match", 1.01),
        ("link", -1.01),
        ("merge", 2),
        ("cohesion_prior", -2),
        ("story_gap_hours", -1),
        ("story_age_hours", 721),
        ("centroid_members", 0),
        ("neighbours", 0),
        ("neighbours", 1001),
        ("time_penalty", -0.1),
        ("chain_slack", 1.1),
        ("merge_size_penalty", "nan"),
        ("merge_cohesion_penalty", "inf"),
        ("match_cohesion_penalty", 1.1),
        ("language_penalty", -0.01),
    ],
)
def test_a_value_out_of_range_is_named_with_its_range(tmp_path, key, value):
    with pytest.raises(CalibrationError, match=rf"{key} is .*must lie between"):
        load_calibration("any", written(tmp_path, **{key: value}))


@pytest.mark.parametrize("value", ['"high"', "[1]", "{a = 1}"])
def test_a_value_that_is_no_number_is_refused(tmp_path, value):
    with pytest.raises(CalibrationError, match="no number"):
        load_calibration("any", written(tmp_path, match=value))


@pytest.mark.parametrize("key", ["neighbours", "centroid_members"])
def test_half_a_neighbour_is_refused(tmp_path, key):
    with pytest.raises(CalibrationError):
        load_calibration("any", written(tmp_path, **{key: 2.5}))


@pytest.mark.parametrize("content", [b"match == 1", b"match = 0.4\nmatch = 0.4", b"\xff\xfe"])
def test_what_is_no_toml_is_refused(tmp_path, content):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(CalibrationError, match=r"broken\.toml is no TOML file"):
        load_calibration("any", path)


def test_a_folder_is_no_calibration(tmp_path):
    with pytest.raises(CalibrationError):
        load_calibration("any", tmp_path)


def test_a_calibration_made_in_code_is_checked_too():
    with pytest.raises(CalibrationError, match="merge is 7"):
        Calibration(**(VALUES | {"merge": 7}))
