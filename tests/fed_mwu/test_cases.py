"""The public cases: R, coin, SAS, exact integers and mpmath are the oracles; directions: tests/cases/README.md."""

import math

import pytest

from case_files import decode, read_cases
from fed_mwu import center_statistic, combined_test, fisher_test, sum_test, weighted_test
from fed_mwu.ranks import log_normal_pvalue

THEIRS = {"two-sided": "two_sided", "greater": "less", "less": "greater"}
MWU = {case["id"]: case for case in read_cases("mwu_cases.json")}
STRATIFIED = {case["id"]: case for case in read_cases("stratified_cases.json")}


@pytest.mark.parametrize("name", MWU)
def test_mann_whitney(name):
    case = MWU[name]
    x, y, expected = decode(case["x"]), decode(case["y"]), case["expected"]
    found = center_statistic(x, y)
    assert (found.n, found.m) == (expected["n_x_used"], expected["n_y_used"])
    if expected.get("outcome") == "reject_or_nan":
        assert math.isnan(found.log_pvalue())
        with pytest.raises(ValueError, match="both groups"):
            combined_test(x, y)
        return
    assert found.u == found.n * found.m - 2 * expected["U_or_statistic"]
    assert found.variance == pytest.approx(4 * expected["variance_tie_corrected"], rel=1e-14)
    for ours, theirs in THEIRS.items():
        corrected = expected[f"p_{theirs}"]
        plain = expected["no_continuity"][f"p_{theirs}"] if "no_continuity" in expected else corrected
        assert math.exp(found.log_pvalue(ours, continuity=True)) == pytest.approx(corrected, rel=1e-11)
        assert combined_test(x, y, alternative=ours).pvalue == pytest.approx(plain, rel=1e-11)
        if f"log10_p_{theirs}" in expected:
            log10 = found.log_pvalue(ours, continuity=True) / math.log(10)
            assert log10 == pytest.approx(expected[f"log10_p_{theirs}"], rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("name", STRATIFIED)
def test_stratified(name):
    case = STRATIFIED[name]
    expected = case["expected"]
    centers = [center_statistic(decode(c["x"]), decode(c["y"])) for c in case["centers"]]
    for found, theirs in zip(centers, expected["per_center"], strict=True):
        assert (found.n, found.m) == (theirs["n_x"], theirs["n_y"])
        if "U_x" in theirs and found.n * found.m:
            assert found.u == found.n * found.m - 2 * theirs["U_x"]
            assert found.variance == pytest.approx(4 * theirs["variance"], rel=1e-13)
    for test, answers in (
        (lambda **k: weighted_test(centers, weights="van-elteren", **k), expected["van_elteren"]),
        (lambda **k: sum_test(centers, **k), expected["sum"]),
    ):
        for ours, theirs in THEIRS.items():
            result = test(alternative=ours)
            assert result.statistic == pytest.approx(-answers["z"], rel=1e-11, abs=1e-12)
            assert result.pvalue == pytest.approx(answers[f"p_{theirs}"], rel=1e-10)
    assert len(expected["fisher"]["centres_used"]) == int(fisher_test(centers).notes[0].split()[0])


@pytest.mark.parametrize("name", STRATIFIED)
def test_optimal_weights_are_van_elteren_without_ties(name):
    centers = [center_statistic(decode(c["x"]), decode(c["y"])) for c in STRATIFIED[name]["centers"]]
    full = [c for c in centers if c.n * c.m]
    tied = any(c.variance < c.n * c.m * (c.n + c.m + 1) / 3 * (1 - 1e-12) for c in full)
    optimal, van_elteren = weighted_test(full), weighted_test(full, weights="van-elteren")
    if tied:
        assert optimal.statistic == pytest.approx(van_elteren.statistic, rel=0.25, abs=0.1)
    else:
        assert optimal.statistic == pytest.approx(van_elteren.statistic, rel=1e-12)


def test_published_values():
    # Lehmann (1975): SAS and Stata print chi-square 2.744, p 0.09765.
    case = STRATIFIED["lehmann-1975"]
    centers = [center_statistic(c["x"], c["y"]) for c in case["centers"]]
    result = weighted_test(centers)
    assert round(result.statistic**2, 3) == case["published"]["chi2_van_elteren"]
    assert round(result.pvalue, 5) == case["published"]["p_two_sided"]
    assert log_normal_pvalue(result.statistic, "two-sided") == result.log_pvalue
