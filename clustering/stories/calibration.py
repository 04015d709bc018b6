"""Thresholds and windows of the passes. They belong to a space and live in `models/`, never in code."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from clustering.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable
    from pathlib import Path

_UNIT_RANGE = (
    "time_penalty",
    "language_penalty",
    "chain_slack",
    "match_cohesion_penalty",
    "merge_cohesion_penalty",
    "merge_size_penalty",
    "event_time_penalty",
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What decides whether two articles tell one story, and two stories one event, in one space.

    A score is a cosine of aligned vectors less the time penalty, so it lies in -1 to 1 less a little.

    Attributes:
        match: least score of an article against a story to join it (pass 1).
        attach: least score of an article that joins no story to be attached to one: shown in it,
            without a part in its centroid, until a better place is found.
        link: least score between two articles to be neighbours (pass 2).
        merge: least score of two stories to become one (pass 3).
        story_gap_hours: longest time between a story's latest article and one that joins it.
        story_age_hours: longest time between a story's first article and one that joins it.
        centroid_members: how many of a story's most recent articles its centroid averages.
        neighbours: how many nearest articles or stories are looked at.
        time_penalty: score lost per unit of log(1 + hours apart).
        language_penalty: score lost by two articles of one language; by stories, in proportion to
            their pairs of articles of one language.
        match_cohesion_penalty: score lost, when an article joins, per unit that the story's cohesion
            exceeds `cohesion_prior`.
        chain_slack: how far below `link` the average similarity of a component's two halves may lie.
        merge_size_penalty: score lost, when stories merge, per unit of log(articles of the smaller one).
        merge_cohesion_penalty: score lost, when stories merge, per unit that the tighter one's cohesion
            exceeds `cohesion_prior`.
        cohesion_prior: cohesion assumed of a story before its members have shown it.
        event_link: least mean score of two clusters of stories to be one event.
        event_gap_hours: longest time between two stories of one event that are compared.
        event_time_penalty: score lost by two stories per unit of log(1 + days apart).
    """

    match: float
    attach: float
    link: float
    merge: float
    story_gap_hours: float
    story_age_hours: float
    centroid_members: int
    neighbours: int
    time_penalty: float
    language_penalty: float
    chain_slack: float
    match_cohesion_penalty: float
    merge_cohesion_penalty: float
    merge_size_penalty: float
    cohesion_prior: float
    event_link: float
    event_gap_hours: float
    event_time_penalty: float

    def __post_init__(self) -> None:
        """Refuse values that cannot mean anything.

        Raises:
            CalibrationError: a value is out of its range.
        """
        for name in ("match", "attach", "link", "merge", "cohesion_prior", "event_link"):
            self._require(name, -1, 1)
        for name in ("story_gap_hours", "story_age_hours"):
            self._require(name, 0, 24 * 30)
        self._require("event_gap_hours", 0, 24 * 366)
        self._require("centroid_members", 1, 10_000)
        self._require("neighbours", 1, 1_000)
        for name in _UNIT_RANGE:
            self._require(name, 0, 1)

    def _require(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        if not least <= value <= most:
            raise CalibrationError(f"{name} is {value}; it must lie between {least} and {most}")


def load_calibration(model: str, path: Path | None = None) -> Calibration:
    """Return the calibration in a file, or the one shipped for a model.

    Args:
        model: name of the model's card.
        path: a TOML file with one key for each attribute of `Calibration`.

    Raises:
        CalibrationError: there is none, or it lacks a key, has an unknown one or one out of range.
    """
    shipped = files("clustering.models").joinpath(f"{model}.calibration.toml")
    source = path or shipped
    if not source.is_file():
        raise CalibrationError(
            f"no calibration for {model} at {source}; name one with --calibration, as its thresholds "
            "cannot be taken from another model"
        )
    return _parse(_read(source), str(path or shipped.name))


def _read(source: Path | Traversable) -> Mapping[str, Any]:
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CalibrationError(f"{source} is no TOML file: {error}") from error


def _parse(values: Mapping[str, Any], source: str) -> Calibration:
    wanted: dict[str, Any] = {
        field.name: int if field.type == "int" else float for field in fields(Calibration)
    }
    if unknown := sorted(values.keys() - wanted.keys()):
        raise CalibrationError(f"{source}: unknown key {unknown[0]}; known are {', '.join(wanted)}")
    if missing := sorted(wanted.keys() - values.keys()):
        raise CalibrationError(f"{source}: {missing[0]} is missing")
    for name, kind in wanted.items():
        if kind is int and not isinstance(values[name], int):
            raise CalibrationError(f"{source}: {name} is {values[name]}, which is no whole number")
    try:
        return Calibration(**{name: kind(values[name]) for name, kind in wanted.items()})
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"{source}: a value is no number: {error}") from error
