"""The design as tests: arrows between folders, file names, public names, documentation."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import fed_mwu

ROOT = Path(__file__).parents[1]
FOLDERS = ("fed_mwu", "strategies", "clients", "simulations")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.py"))
PUBLIC = {
    "fed_mwu": [
        "CenterStatistic",
        "Ends",
        "RankTestResult",
        "Table",
        "bin_center",
        "center_statistic",
        "combined_test",
        "fisher_test",
        "join_center",
        "sum_test",
        "table_test",
        "weighted_test",
    ],
    "fed_mwu.strategies": ["FisherMWU", "SequentialTable", "SumMWU", "WeightedMWU"],
    "fed_mwu.simulations": ["Federation"],
}


def imports(path):
    """Return what a file imports: (dots of a relative import, module)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def name(path):
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_arrows_go_one_way(path):
    folder = path.parent.name
    for level, module in imports(path):
        ours = module.split(".")[0] in FOLDERS
        if folder == "fed_mwu":
            assert level == 0
            assert not module.startswith(("fed_mwu.strategies", "fed_mwu.clients", "fed_mwu.simulations"))
            assert not module.startswith("flwr") or path.name.endswith("messages.py")
        elif folder == "simulations":
            assert level <= 1
        else:  # siblings relatively, the core absolutely, nothing else of ours: it must run under either name
            assert level <= 1
            nested = module.startswith(tuple(f"fed_mwu.{other}" for other in FOLDERS))
            assert level == 1 or not ours or (module.startswith("fed_mwu.") and not nested)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_short_and_named_so_that_a_bundle_takes_it(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 310
    assert not path.name.startswith("test_")
    assert not path.name.endswith("_test.py")
    assert path.stem not in {"utils", "helpers", "common", "misc"}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_functions_are_short(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert node.end_lineno - first.lineno < 40, node.name


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_there_and_documented(module):
    found = importlib.import_module(module)
    assert found.__all__ == sorted(found.__all__)
    assert set(PUBLIC[module]) <= set(found.__all__)
    for public in found.__all__:
        thing = getattr(found, public)
        text = inspect.getdoc(thing)
        assert text, public
        if inspect.isfunction(thing):
            assert all(section in text for section in ("Parameters\n---", "Returns\n---", "Raises\n---")), public
            assert all(parameter in text for parameter in inspect.signature(thing).parameters), public


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_file_says_what_it_exports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    exported = [
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert exported or path.name == "__init__.py"


def test_nothing_raises_by_assert_and_nothing_prints_but_the_app():
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path
        calls = [
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert "print" not in calls or name(path) == "strategies/app.py"


def test_the_version_is_one():
    assert f'version = "{fed_mwu.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
