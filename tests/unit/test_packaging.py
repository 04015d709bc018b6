"""The wheel as a user gets it: built from what git tracks, unpacked and used away from the sources.

An editable install may stand beside it, and its finder would quietly serve a file that the wheel
lacks. So every check on the unpacked wheel also asks where the file came from.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA_FOLDERS = ("models", "sample", "sql")
IMPORT_LIMIT_SECONDS = 0.5
HEAVY = ("torch", "scipy", "sentence_transformers", "sklearn", "transformers")


def run(*command, **options):
    """Run a command and return its output; a failure shows what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tracked():
    """Return the paths that git tracks and that are there, relative to the root."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: what belongs in the wheel is what git tracks")
    names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tracked, tmp_path_factory):
    """Build the wheel from a copy, so that no build folder is left among the sources."""
    copy, target = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for name in tracked:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    options = ("--wheel", "--no-isolation", "--outdir", str(target))
    run(sys.executable, "-m", "build", *options, cwd=copy)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def outside(unpacked, tmp_path):
    """Return a function that runs Python code with the unpacked wheel, away from the sources."""

    def outside(code):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(unpacked)}
        return run(sys.executable, "-P", "-c", code, cwd=tmp_path, env=environment)

    return outside


def in_wheel(name):
    """Return where a tracked file stands in the wheel."""
    return f"clustering/{name}" if name.startswith(DATA_FOLDERS) else name


def metadata(contents, name):
    (content,) = (value for key, value in contents.items() if key.endswith(f".dist-info/{name}"))
    return content.decode()


def test_the_wheel_installs_one_name(contents):
    folders = {name.split("/")[0] for name in contents}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"clustering"}
    assert metadata(contents, "top_level.txt").split() == ["clustering"]


def test_the_wheel_holds_the_tracked_files_and_no_others(tracked, contents):
    belong = [name for name in tracked if name.split("/")[0] in ("clustering", *DATA_FOLDERS)]
    found = {name for name in contents if name.startswith("clustering/")}
    assert found == {in_wheel(name) for name in belong}


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_every_data_file_is_in_the_wheel_byte_for_byte(tracked, contents, folder):
    names = [name for name in tracked if name.startswith(f"{folder}/")]
    assert f"{folder}/__init__.py" in names
    for name in names:
        assert contents.get(in_wheel(name)) == (ROOT / name).read_bytes(), name


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_data_folders_hold_no_code_but_their_marker(tracked, folder):
    code = [name for name in tracked if name.startswith(f"{folder}/") and name.endswith(".py")]
    assert code == [f"{folder}/__init__.py"]
    assert len((ROOT / code[0]).read_text().splitlines()) == 1


def test_the_wheel_says_that_it_is_typed(contents):
    assert "clustering/py.typed" in contents


def test_the_wheel_names_its_command_licence_and_requirements(contents):
    described = Parser().parsestr(metadata(contents, "METADATA"))
    assert described["Name"] == "story-clustering"
    assert described["License-Expression"] == "MIT AND CC-BY-SA-4.0"
    assert described["Requires-Python"] == ">=3.11"
    assert any(name.endswith("/licenses/LICENSE") for name in contents)
    assert "stories = clustering.cli:main" in metadata(contents, "entry_points.txt")
    required = described.get_all("Requires-Dist")
    assert any(name.startswith("psycopg[binary]>=") for name in required)


def test_the_unpacked_wheel_imports_away_from_the_sources(outside, unpacked):
    found = outside("import clustering; print(clustering.__file__)").strip()
    assert found == str(unpacked / "clustering" / "__init__.py")


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_resources_are_found_in_the_unpacked_wheel(outside, unpacked, contents, folder):
    code = (
        "import json; from importlib.resources import files\n"
        f"folder = files('clustering.{folder}')\n"
        "print(json.dumps([str(folder), sorted(item.name for item in folder.iterdir())]))"
    )
    place, names = json.loads(outside(code))
    assert place == str(unpacked / "clustering" / folder)
    prefix = f"clustering/{folder}/"
    expected = {name[len(prefix) :].split("/")[0] for name in contents if name.startswith(prefix)}
    assert set(names) - {"__pycache__"} == expected


def test_a_query_file_can_be_read_from_the_unpacked_wheel(outside, tracked):
    queries = [name for name in tracked if name.startswith("sql/") and name.endswith(".sql")]
    assert queries, "sql/ has no tracked .sql file"
    inner = queries[0].removeprefix("sql/")
    code = (
        "from importlib.resources import files\n"
        f"print(files('clustering.sql').joinpath({inner!r}).read_text('utf-8'), end='')"
    )
    assert outside(code) == (ROOT / queries[0]).read_text("utf-8")


def test_importing_the_package_loads_nothing_heavy(outside):
    code = f"import sys, clustering; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    assert outside(code).strip() == "[]"


def test_importing_the_package_is_quick(outside):
    code = (
        "import time; start = time.perf_counter()\n"
        "import clustering; print(time.perf_counter() - start)"
    )
    outside(code)  # the first one compiles
    assert min(float(outside(code)) for _ in range(3)) < IMPORT_LIMIT_SECONDS


def test_help_of_the_command_is_quick_and_loads_nothing_heavy(outside):
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "from clustering.cli import main\n"
        "sys.argv = ['stories', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))\n"
        "print(time.perf_counter() - start)"
    )
    outside(code)  # the first one compiles
    outputs = [outside(code).splitlines() for _ in range(3)]
    assert "usage" in "\n".join(outputs[0]).lower()
    assert outputs[0][-2] == "[]"
    assert min(float(lines[-1]) for lines in outputs) < IMPORT_LIMIT_SECONDS
