"""Every command and snippet of the README is run: the two set-up lines by .ci/run, the rest here."""

import contextlib
import io
import itertools
import re
from pathlib import Path

import pytest
from flwr.serverapp import ServerApp

from fed_mwu.simulations import Federation
from fed_mwu.simulations.local import identity
from fed_mwu.strategies import settings

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)


def test_the_notebook_snippets_print_what_stands_below_them():
    names = {}
    checked = 0
    for (language, code), (_, below) in itertools.pairwise(BLOCKS):
        if language == "python" and "print(" in code and "ServerApp" not in code:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
            assert printed.getvalue() == below
            checked += 1
    assert checked == 4


def test_the_server_app_example(capsys):
    code = next(code for language, code in BLOCKS if language == "python" and "ServerApp()" in code)
    names = {}
    exec(code, names)
    assert isinstance(names["app"], ServerApp)
    groups = {"no": range(20), "yes": range(5, 30)}
    federation = Federation({name: {"thalach": groups} for name in "ABC"})
    with identity():
        names["app"](federation.grid(), None)
    assert "thalach by disease" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["main", "tests"])
def test_ci_runs_the_set_up_lines(name):
    assert f"<!-- run: {name} -->\n```sh\n" in TEXT
    assert f"$(readme {name})" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_run_config_table_is_complete():
    section = TEXT.split("## Run config")[1].split("\n## ")[0]
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", section, flags=re.MULTILINE))
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.flwr.app.config]")[1].split("[")[0]
    given = dict(re.findall(r"^([a-z-]+) = (.*)$", config, flags=re.MULTILINE))
    assert documented == set(given)
    assert all(f"| `{key}` | `{value}` |" in section for key, value in given.items())
    assert all(f"`{test}`" in section or test in section for test in settings.TESTS)


def test_no_machine_or_registry_is_named():
    for path in ROOT.rglob("*"):
        if path.suffix in {".py", ".md", ".toml"} and not {".venv", "build"} & set(path.parts):
            text = path.read_text(encoding="utf-8")
            assert "/" + "work/" not in text, path
            assert "pypi" + ".org" not in text, path
