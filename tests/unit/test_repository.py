"""The style of the code as numbers, read off its syntax trees."""

from __future__ import annotations

import ast
import io
import re
import statistics
import tokenize
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = sorted((ROOT / "clustering").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTION)

MEDIAN_FUNCTION_LINES = 8
P90_FUNCTION_LINES = 30
LONGEST_FUNCTION_LINES = 60
LONGEST_FILE_LINES = 500
TEST_LINES_FOR_ONE_OF_CODE = 1.2
STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE)\b", re.IGNORECASE)


@cache
def tree(path):
    return ast.parse(path.read_text("utf-8"), str(path))


def place(path, node):
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def functions(paths):
    for path in paths:
        for node in ast.walk(tree(path)):
            if isinstance(node, FUNCTION):
                yield path, node


def docstring_lines(node):
    """Return the line numbers of the node's docstring."""
    if not isinstance(node, DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return set()
    first = node.body[0]
    return set(range(first.lineno, first.end_lineno + 1))


def body_lines(function):
    """Count the lines from the first statement after the docstring to the last."""
    documented = ast.get_docstring(function, clean=False) is not None
    body = function.body[1:] if documented else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def code_lines(source):
    """Count lines that hold code: neither blank, nor comment alone, nor docstring."""
    held = set()
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in silent and token.type != tokenize.ENDMARKER:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held.difference(*map(docstring_lines, ast.walk(ast.parse(source)))))


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def public_nodes(node):
    """Yield the public functions and classes of a module or class, without those in functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTION, ast.ClassDef)):
            if is_public(child.name):
                yield child
                if isinstance(child, ast.ClassDef):
                    yield from public_nodes(child)
        elif isinstance(child, (ast.If, ast.Try)):
            yield from public_nodes(child)


def undocumented(module):
    """Return what is public and has no docstring; `__init__` is documented with its class."""
    overloads = {
        node
        for node in ast.walk(module)
        if isinstance(node, FUNCTION)
        and any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
    }
    nodes = [module, *public_nodes(module)]
    return [
        getattr(node, "name", "module")
        for node in nodes
        if ast.get_docstring(node) is None
        and node not in overloads
        and getattr(node, "name", "") != "__init__"
        and (not isinstance(node, ast.Module) or node.body)
    ]


def unannotated(function):
    """Return the names without annotation of one function, `return` among them."""
    spec = function.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    missing = [arg.arg for arg in named if arg is not None and arg.annotation is None]
    if missing and missing[0] in ("self", "cls"):
        missing = missing[1:]
    return missing + ([] if function.returns else ["return"])


def sql_fstrings(module):
    """Return the f-strings, with something filled in, that start as SQL statements do."""
    return [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.JoinedStr)
        and any(isinstance(part, ast.FormattedValue) for part in node.values)
        and isinstance(node.values[0], ast.Constant)
        and STATEMENT.match(node.values[0].value)
    ]


def exported(module):
    """Return the names in `__all__`, or None where the module has none."""
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return ast.literal_eval(node.value)
    return None


def export_order(name):
    """Sort as ruff's RUF022 does: constants, then classes, then the rest."""
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1, name) if name[:1].isupper() else (2, name)


def defined(module):
    """Return the names that a module binds at its top level."""
    names = set()
    for node in module.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (*FUNCTION, ast.ClassDef)):
            names.add(node.name)
        else:
            names |= {
                part.id
                for part in ast.walk(node)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
    return names


# The measures themselves, on code whose figures are plain to see.

SPECIMEN = '''"""Module.

Two lines.
"""

# a comment
import os


class Thing:
    """A thing."""

    def __init__(self, size: int) -> None:
        self.size = size

    def grow(self, by, *rest: int, **more) -> int:
        """Grow.

        By how much.
        """
        text = """one
        two"""

        return len(text)  # with a comment

    def _hidden(self):
        pass


def bare():
    def inner():
        return f"select {os} from t", f"Select one", f"{os} select", f"selected {os}"
    return inner
'''


def specimen(name):
    nodes = ast.walk(ast.parse(SPECIMEN))
    return next(node for node in nodes if isinstance(node, FUNCTION) and node.name == name)


def test_lines_are_counted_without_blanks_comments_and_docstrings():
    assert code_lines(SPECIMEN) == 14
    assert code_lines('"""Only a docstring."""\n\n# and a comment\n') == 0
    assert code_lines('x = 1\n"""no docstring"""\n') == 2


def test_functions_are_measured_without_their_docstring():
    assert [body_lines(specimen(name)) for name in ("__init__", "grow", "bare")] == [1, 4, 3]


def test_undocumented_names_are_found():
    assert undocumented(ast.parse(SPECIMEN)) == ["bare"]
    assert undocumented(ast.parse("x = 1")) == ["module"]
    assert undocumented(ast.parse("")) == []


def test_missing_annotations_are_found():
    assert unannotated(specimen("grow")) == ["by", "more"]
    assert unannotated(specimen("_hidden")) == ["return"]
    assert unannotated(specimen("__init__")) == []


def test_sql_in_fstrings_is_found():
    assert len(sql_fstrings(ast.parse(SPECIMEN))) == 1
    assert len(sql_fstrings(ast.parse('f"""\n  WITH x AS ({y}) SELECT"""'))) == 1
    assert sql_fstrings(ast.parse('"select 1"; f"within {x}"; f"updated {x}"')) == []


def test_exports_are_read_and_ordered():
    assert exported(ast.parse("__all__ = ['b', 'a']")) == ["b", "a"]
    assert exported(ast.parse("__all__: list[str] = ['b']")) == ["b"]
    assert exported(ast.parse("x = 1")) is None
    names = ["Engine", "PRF", "a", "LIMIT_HOURS", "Article"]
    assert sorted(names, key=export_order) == ["LIMIT_HOURS", "PRF", "Article", "Engine", "a"]


# The code.


def test_there_is_code_to_measure():
    assert ROOT / "clustering" / "errors.py" in CODE
    assert len(list(functions(CODE))) > 50


def test_functions_are_short():
    sizes = [body_lines(function) for _, function in functions(CODE)]
    assert statistics.median(sizes) <= MEDIAN_FUNCTION_LINES
    assert statistics.quantiles(sizes, n=10)[-1] <= P90_FUNCTION_LINES


def test_no_function_is_long():
    long = [
        f"{place(path, function)} {function.name}: {body_lines(function)}"
        for path, function in functions(CODE)
        if body_lines(function) > LONGEST_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("folder", [CODE, TESTS], ids=["code", "tests"])
def test_no_file_is_long(folder):
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in folder}
    long = {str(path): size for path, size in sizes.items() if size > LONGEST_FILE_LINES}
    assert long == {}


def test_everything_public_is_documented():
    missing = [
        f"{path.relative_to(ROOT)}: {name}" for path in CODE for name in undocumented(tree(path))
    ]
    assert missing == []


def test_every_function_is_annotated():
    missing = [
        f"{place(path, function)} {function.name}: {names}"
        for path, function in functions(CODE)
        if (names := unannotated(function))
    ]
    assert missing == []


def test_tests_outweigh_the_code():
    code = sum(code_lines(path.read_text("utf-8")) for path in CODE)
    tests = sum(code_lines(path.read_text("utf-8")) for path in TESTS)
    assert tests / code >= TEST_LINES_FOR_ONE_OF_CODE, f"{tests} lines of tests, {code} of code"


def test_no_sql_is_put_together_in_fstrings():
    found = [place(path, node) for path in CODE for node in sql_fstrings(tree(path))]
    assert found == []


def test_exports_are_sorted_and_exist():
    exports = {path: names for path in CODE if (names := exported(tree(path))) is not None}
    assert exports
    for path, names in exports.items():
        assert list(names) == sorted(set(names), key=export_order), path
        lazy = any(isinstance(n, FUNCTION) and n.name == "__getattr__" for n in tree(path).body)
        assert lazy or set(names) <= defined(tree(path)), path


def test_test_files_have_unique_names():
    names = [path.name for path in TESTS if path.name != "conftest.py"]
    assert len(names) == len(set(names))
    assert not any(path.name == "__init__.py" for path in TESTS)


def test_every_dependency_is_explained():
    explained = ROOT / "docs" / "dependencies.md"
    if not explained.exists():
        pytest.skip("docs/dependencies.md is not written yet")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[\[<>=!~; ]", entry)[0] for group in groups for entry in group}
    lines = explained.read_text("utf-8").splitlines()
    missing = [
        name
        for name in sorted(names)
        if not any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line) for line in lines)
    ]
    assert missing == []
