"""Wheel, editable install and bundle hold what they should, and work under their own names."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from flower import BIN, environment, free_ports

ROOT = Path(__file__).parents[1]

USE_NESTED = """
import json, sys
import fed_mwu
from importlib import resources
from importlib.util import find_spec
from fed_mwu.clients.app import app as client
from fed_mwu.simulations import Federation
from fed_mwu.strategies import SequentialTable
from fed_mwu.strategies.app import app as server
result = Federation({"A": {"x": range(30), "y": range(5, 40)}}, k=10).run(SequentialTable())
files = resources.files("fed_mwu")
found = {
    "file": fed_mwu.__file__,
    "z": result.test.statistic,
    "typed": (files / "py.typed").is_file(),
    "demo": "CC BY 4.0" in json.loads((files / "data" / "heart.json").read_text())["license"],
    "top": [name for name in ("strategies", "clients", "simulations") if find_spec(name)],
}
print(json.dumps(found))
"""

USE_BUNDLE = """
import json, sys
import fed_mwu, clients.app, strategies.app
from clients.source import demo_sources
nested = "fed_mwu.clients" in sys.modules
print(json.dumps({"file": fed_mwu.__file__, "centers": len(demo_sources()), "nested": nested}))
"""


def run(python, code, cwd, **env):
    done = subprocess.run(
        [python, "-W", "ignore", "-c", code], cwd=cwd, env=os.environ | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A clean copy of what git knows, so that no build writes into the checkout."""
    target = tmp_path_factory.mktemp("sources")
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes((ROOT / name).read_bytes())
    return target


def test_the_wheel_nests_everything_under_one_name(sources, tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(sources)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"fed_mwu", "fed_mwu-0.1.0.dist-info"}
    assert {"fed_mwu/strategies/app.py", "fed_mwu/clients/app.py", "fed_mwu/simulations/local.py"} <= set(names)
    # A clean environment: the dependencies of this one, but nothing of this project.
    venv.create(tmp_path / "clean", with_pip=False)
    packages = next((tmp_path / "clean").glob("lib/python*/site-packages"))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(packages), str(wheel)],
        check=True,
        capture_output=True,
    )
    # PYTHONPATH instead of a .pth file: a .pth of this environment would bring the editable install along.
    found = run(
        tmp_path / "clean" / "bin" / "python",
        USE_NESTED,
        tmp_path,
        PYTHONPATH=f"{packages}:{sysconfig.get_path('purelib')}",
    )
    assert found["file"].startswith(str(packages))
    assert (found["typed"], found["demo"], found["top"]) == (True, True, [])


def test_the_editable_install_works_from_anywhere(tmp_path):
    found = run(sys.executable, USE_NESTED, tmp_path)
    assert found["file"] == str(ROOT / "fed_mwu" / "__init__.py")
    assert (found["typed"], found["demo"], found["top"]) == (True, True, [])


def test_the_bundle_holds_both_sides_and_nothing_else(sources, tmp_path):
    env = environment(tmp_path, free_ports(2))
    subprocess.run([BIN / "flwr", "build"], cwd=sources, env=env, check=True, capture_output=True)
    bundle = zipfile.ZipFile(next(sources.glob("*.fab")))
    names = bundle.namelist()
    assert {name.split("/")[0] for name in names} == {
        "fed_mwu",
        "strategies",
        "clients",
        "README.md",
        "LICENSE",
        "pyproject.toml",
        ".info",
    }
    bundle.extractall(tmp_path / "bundle")
    found = run(sys.executable, USE_BUNDLE, tmp_path / "bundle", PYTHONPATH=str(tmp_path / "bundle"))
    assert found["file"].startswith(str(tmp_path / "bundle"))
    assert (found["centers"], found["nested"]) == (4, False)
