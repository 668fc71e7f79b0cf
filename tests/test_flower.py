"""The app on Flower's simulation engine: a bundle, Ray, and the same numbers as in process, bit for bit."""

import json
import subprocess
import sys

import numpy as np
import pytest

from fed_mwu import fit_yeo_johnson
from fed_mwu.clients.source import demo_sources
from fed_mwu.report import as_dict
from fed_mwu.simulations import Federation
from fed_mwu.strategies import FisherMWU, SequentialTable, SumMWU, WeightedMWU
from flower import ROOT, environment, flwr_run, free_ports, result_in, simulation

LABELS = ("no", "yes")


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    with simulation(tmp_path_factory.mktemp("flower")) as found:
        yield found


def in_process(variables):
    """Run the app's four tests on the demo in this process."""
    centers = {
        source.name: {
            variable: dict(zip(LABELS, source.groups(variable, "disease", LABELS), strict=True))
            for variable in variables
        }
        for source in demo_sources()
    }
    federation = Federation(centers, k=10)
    options = {"group": "disease", "min_centers": 2}
    return as_dict(
        [federation.run(strategy(**options)) for strategy in (SequentialTable, WeightedMWU, SumMWU, FisherMWU)]
    )


def same_numbers(found, expected):
    """Compare all but the costs: the app shares one round between tests."""
    assert found["question"] == expected["question"]
    for variable, there in expected["variables"].items():
        here = found["variables"][variable]
        assert here["tests"] == there["tests"]
        assert here["table"] == there["table"]
        key = lambda center: center["center"]  # noqa: E731
        assert sorted(here["centers"], key=key) == sorted(there["centers"], key=key)


def test_the_main_job(env, tmp_path):
    stream = flwr_run(env, {"output": str(tmp_path / "result.json")})
    found = result_in(stream)
    same_numbers(found, in_process(["thalach"]))
    assert json.loads((tmp_path / "result.json").read_text()) == found
    centers = {center["center"]: center for center in found["variables"]["thalach"]["centers"]}
    assert centers["Switzerland"]["status"] == 'declined: group "no" has fewer than 10 values'
    assert centers["Switzerland"]["sizes"] is None
    assert found["analyses"][0]["rounds"] == 4
    assert sum(analysis["rounds"] for analysis in found["analyses"]) == 5
    # What a person sees, and what the README shows.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split("<!-- output: main -->\n```\n")[1].split("```")[0]
    assert shown in stream
    assert 'declined: group "no" has fewer than 10 values' in stream
    assert [line.split()[0] for line in stream.splitlines() if " to 0." in line] == [
        "table",
        "weighted",
        "sum",
        "fisher",
    ]


def test_several_variables_and_other_settings(env):
    config = {"variables": "age,chol", "tests": "van-elteren,table", "alternative": "less", "k": 12, "output": ""}
    found = result_in(flwr_run(env, config))
    assert list(found["variables"]) == ["age", "chol"]
    assert [test["method"] for test in found["variables"]["chol"]["tests"]] == ["weighted (van-elteren)", "table"]
    assert (found["question"]["k"], found["question"]["alternative"]) == (12, "less")


def test_a_folder_of_csv_files(env, tmp_path):
    for name, shift in (("north", 0), ("south", 3)):
        rows = "\n".join(f"{i + shift},{'ab'[i % 2]}" for i in range(60))
        (tmp_path / f"{name}.csv").write_text(f"pain,arm\n{rows}\n", encoding="utf-8")
    config = {"data": str(tmp_path), "variables": "pain", "group": "arm", "groups": "a,b", "tests": "sum", "output": ""}
    found = result_in(flwr_run(env, config, nodes=2))
    centers = found["variables"]["pain"]["centers"]
    assert sorted((center["center"], *center["sizes"]) for center in centers) == [("north", 30, 30), ("south", 30, 30)]


def test_quantiles(env):
    config = {"analysis": "quantiles", "estimators": "yeo-johnson,step,data,loss", "allow-quantile-loss": True}
    config |= {"group": "", "quantiles": "0.25,0.5,0.9", "output": ""}
    found = result_in(flwr_run(env, config))["variables"]["thalach"]["quantiles"]
    values = np.concatenate([source.groups("thalach", "", ("all",))[0] for source in demo_sources()])
    values = values[~np.isnan(values)]
    by_estimator = {q["estimator"]: q["estimates"] for q in found}
    assert by_estimator["loss"] == np.quantile(values, [0.25, 0.5, 0.9], method="inverted_cdf").tolist()
    assert by_estimator["yeo-johnson data"] == pytest.approx(
        fit_yeo_johnson(values).quantiles([0.25, 0.5, 0.9]), rel=1e-9
    )
    assert by_estimator["yeo-johnson"] == pytest.approx(by_estimator["loss"], rel=0.03)


def test_a_wrong_value_is_refused_before_any_round(env):
    stream = flwr_run(env, {"tests": "t-test", "k": 1})
    assert "the run config is not accepted" in stream
    assert "tests = 't-test': accepted is one or several of ('table', 'weighted', 'sum', 'fisher')" in stream
    assert "k = 1: accepted is a whole number of at least 2" in stream
    assert "FED_MWU_RESULT" not in stream


RUN_INSTALLED = """
import json, warnings
warnings.simplefilter("ignore")
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from fed_mwu.clients.app import app as client
from fed_mwu.report import as_json
from fed_mwu.strategies import FisherMWU, SequentialTable, SumMWU, WeightedMWU

server = ServerApp()

@server.main()
def main(grid, context):
    options = dict(variables=["thalach"], group="disease", groups=("no", "yes"), k=10, min_centers=4 - 1)
    results = [s(**options).start(grid=grid).analysis for s in (SequentialTable, WeightedMWU, SumMWU, FisherMWU)]
    print("FED_MWU_RESULT " + as_json(results, indent=None), flush=True)

run_simulation(server_app=server, client_app=client, num_supernodes=4)
"""


def test_another_server_app_on_ray_with_the_installed_package(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RUN_INSTALLED],
        env=environment(tmp_path, free_ports(2)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    same_numbers(result_in(done.stdout + done.stderr), in_process(["thalach"]))
