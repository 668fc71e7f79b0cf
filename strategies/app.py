"""The ServerApp: run config -> settings -> strategies -> a report, printed and written as JSON.

The table takes one round for the sizes and one for each center; the other tests share a single round.
"""

import logging
from collections.abc import Sequence
from logging import ERROR, INFO
from typing import Any

from flwr.app import Context
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from fed_mwu.errors import TooFewCenters
from fed_mwu.outcomes import FederatedResult, TableResult
from fed_mwu.quantiles import QUANTILE_METHODS
from fed_mwu.report import as_json, as_text

from .center_tests import CenterTest, FisherMWU, SumMWU, WeightedMWU
from .quantiles import QuantileLoss, YeoJohnson
from .settings import WEIGHTED, Settings, read_settings
from .tables import SequentialTable

__all__ = ["RESULT_MARK", "app", "run", "run_quantiles"]

# Flower hands results of a ServerApp to the user through its log only: this line is for programs that read it.
RESULT_MARK = "FED_MWU_RESULT "

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the analysis that the run config asks for."""
    _show_progress()
    settings = read_settings(context.run_config)
    try:
        results = run_quantiles(grid, settings) if settings.analysis == "quantiles" else run(grid, settings)
    except TooFewCenters as error:
        log(ERROR, "%s", error)
        raise
    print(as_text(results), flush=True)
    print(RESULT_MARK + as_json(results, indent=None), flush=True)
    if settings.output is not None:
        settings.output.write_text(as_json(results) + "\n", encoding="utf-8")
        log(INFO, "wrote %s", settings.output.resolve())


def _show_progress() -> None:
    """Send fed_mwu's own log to where Flower's goes: the stream that the analyst follows."""
    ours, flowers = logging.getLogger("fed_mwu"), logging.getLogger("flwr")
    ours.setLevel(logging.INFO)
    for handler in flowers.handlers:
        ours.addHandler(handler)


def run(grid: Grid, settings: Settings) -> list[FederatedResult]:
    """Run the tests of the settings, in their order; the one-shot ones share one round of messages.

    Raises
    ------
    TooFewCenters
        If no variable has enough centers.
    """
    options = _options(settings)
    results: dict[str, FederatedResult] = {}
    if "table" in settings.tests:
        results["table"] = SequentialTable(**options).start(grid=grid).analysis
    center_tests = [_center_test(name, options) for name in settings.tests if name != "table"]
    results |= zip((n for n in settings.tests if n != "table"), _one_round(grid, center_tests), strict=True)
    return [results[name] for name in settings.tests]


def run_quantiles(grid: Grid, settings: Settings) -> list[FederatedResult]:
    """Run the quantile estimators of the settings; all that use a table share one.

    Raises
    ------
    TooFewCenters
        If no variable has enough centers.
    """
    options = _options(settings)
    results: list[FederatedResult] = []
    methods = [method for method in QUANTILE_METHODS if method in settings.estimators]
    if methods:
        table = SequentialTable(**options).start(grid=grid).analysis
        if not isinstance(table, TableResult):
            raise TypeError("a sequential table must give a table")
        results.append(table.quantiles(settings.quantiles, methods))
    if "data" in settings.estimators:
        results.append(YeoJohnson(probabilities=settings.quantiles, **options).start(grid=grid).analysis)
    if "loss" in settings.estimators:
        results.append(QuantileLoss(probabilities=settings.quantiles, **options).start(grid=grid).analysis)
    return results


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "variables": settings.variables,
        "group": settings.group,
        "groups": settings.groups,
        "k": settings.k,
        "ends": settings.ends,
        "alternative": settings.alternative,
        "min_centers": settings.min_centers,
        "timeout": settings.timeout,
    }


def _center_test(name: str, options: dict[str, Any]) -> CenterTest:
    if name in WEIGHTED:
        return WeightedMWU(weights=WEIGHTED[name], **options)  # type: ignore[arg-type]
    return {"sum": SumMWU, "fisher": FisherMWU}[name](**options)


def _one_round(grid: Grid, tests: Sequence[CenterTest]) -> list[FederatedResult]:
    """Ask the centers once, for the first test; the others read the same answers and cost nothing."""
    if not tests:
        return []
    first = tests[0].start(grid=grid).analysis
    return [first, *(test.reuse(first) for test in tests[1:])]
