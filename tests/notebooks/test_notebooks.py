"""The notebooks run from top to bottom on the sample day, and import nothing but this package."""

from __future__ import annotations

import ast
import sys
from base64 import b64decode
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from clustering.store.embedded import EmbeddedServer

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
CHARTS = {
    "01_quickstart.ipynb": 0,
    "02_threshold_tuning.ipynb": 6,
    "03_wrong_merge.ipynb": 2,
    "04_ranking.ipynb": 0,
}
PNG = b"\x89PNG\r\n\x1a\n"


def read(name):
    return nbformat.read(FOLDER / name, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def home(homes, model_home):
    """A home with the model expanded, whose embedded server is stopped in the end."""
    yield model_home
    EmbeddedServer(model_home).stop()


@pytest.fixture(scope="module", params=NOTEBOOKS)
def executed(request, home):
    notebook = read(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORIES_HOME", str(home))
        patch.delenv("STORIES_DATABASE", raising=False)
        patch.setenv("PYTHONWARNINGS", "default")
        NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return request.param, notebook


def test_every_chart_is_drawn_and_nobody_complains(executed):
    name, notebook = executed
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    images = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    assert len(images) == CHARTS[name]
    assert all(b64decode(image).startswith(PNG) for image in images)
    assert [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"] == []


@pytest.mark.parametrize("executed", ["01_quickstart.ipynb"], indirect=True)
def test_the_quickstart_tells_stories_and_a_second_play_adds_none(executed):
    _, notebook = executed
    printed = ["".join(o.get("text", "") for o in cell.outputs) for cell in code(notebook)]
    assert sum(" articles  " in line for line in printed[2].splitlines()) > 10
    assert "discover" in printed[3]
    again = code(notebook)[5].outputs[0].data["text/plain"]
    assert "unchanged" in again
    assert "new" not in again


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_only_this_package_and_the_standard_library_are_imported(name):
    for cell in code(read(name)):
        for node in ast.walk(ast.parse(cell.source)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                root = module.split(".")[0]
                assert root == "clustering" or root in sys.stdlib_module_names


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_without_outputs(name):
    for cell in code(read(name)):
        assert cell.outputs == []
        assert cell.execution_count is None
