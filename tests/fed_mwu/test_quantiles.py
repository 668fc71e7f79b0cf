import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from case_files import read_cases
from fed_mwu import Ends, Table, bin_center, inverse_yeo_johnson, join_center, table_quantiles, yeo_johnson_table
from fed_mwu.quantiles import QUANTILE_METHODS, estimate_from_table
from fed_mwu.yeo_johnson_table import fit_table

CASES = read_cases("quantile_cases.json")
GROUPED = {case["id"]: case for case in CASES if case["kind"] == "grouped_yeojohnson"}
HISTOGRAMS = {case["id"]: case for case in CASES if case["kind"] == "histogram_quantile"}
P = [0.02, 0.25, 0.5, 0.75, 0.98]


def case_table(case):
    """A case whose ends are finite means them: an empty open bin on each side says so."""
    edges, counts = [float(edge) for edge in case["edges"]], list(case["counts"])
    if math.isfinite(edges[0]):
        edges, counts = [-math.inf, *edges, math.inf], [0, *counts, 0]
    return Table(edges, [counts])


@pytest.mark.parametrize("name", GROUPED)
def test_grouped_fit_of_public_cases(name):
    # Oracle: six starts of Nelder-Mead on the likelihood, confirmed by a profile grid.
    case = GROUPED[name]
    fit, expected = fit_table([case_table(case)]), case["expected"]
    assert fit.log_likelihood == pytest.approx(expected["max_loglik"], abs=1e-6)
    assert (fit.lam, fit.mu, fit.sigma) == pytest.approx(
        (expected["lambda_"], expected["mu"], expected["sigma"]), rel=1e-5
    )
    assert table_quantiles(case_table(case), case["q"]) == pytest.approx(expected["model_quantiles"], rel=1e-6)


def likelihood(table, lam, mu, sigma):
    """METHODS 8, term by term, the ends open."""
    b = (stats.yeojohnson(table.limits[1:-1], lam) - mu) / sigma
    shares = np.diff(np.concatenate(([0.0], stats.norm.cdf(b), [1.0])))
    used = table.counts[0] > 0
    return float(table.counts[0][used] @ np.log(shares[used]))


@pytest.mark.parametrize("shape", [0.7, 4.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_grouped_fit_is_the_maximum(rng, shape, sign):
    # Oracle: scipy's transform and optimizer on the formula, from the fit and from a distance.
    table = bin_center([sign * rng.gamma(shape, size=1500)], k=25)
    fit = fit_table([table])
    best = likelihood(table, fit.lam, fit.mu, fit.sigma)
    assert fit.log_likelihood == pytest.approx(best, rel=1e-9)
    start = [fit.lam + 0.3, fit.mu * 1.1, math.log(fit.sigma * 1.2)]
    found = optimize.minimize(
        lambda t: -likelihood(table, t[0], t[1], math.exp(t[2])),
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-10, "maxiter": 4000},
    )
    assert -found.fun <= best + 1e-7
    assert found.x[0] == pytest.approx(fit.lam, abs=1e-3)


@given(st.floats(-6, 6), st.floats(-4, 4))
def test_grouped_fit_stands_any_unit_and_offset(exponent, place):
    # The curve is fitted on the data's own scale. Far from 0 the transform is an exponential of the data, so that
    # shifting and rescaling them leave the quantiles' places alone: an identity for an optimum found from anywhere.
    table = bin_center([np.random.default_rng(3).gamma(4, size=600)], k=20)
    unit = 10.0**exponent
    offset = unit * 1e5 * (5 + place)
    places = [
        (fit_table([Table(o + u * table.limits, table.counts)]).quantiles(P) - o) / u
        for o, u in ((1e5, 1), (offset, unit))
    ]
    assert places[0] == pytest.approx(places[1], rel=1e-3)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_optimum_does_not_depend_on_the_start(rng, monkeypatch, unit):
    table = bin_center([unit * rng.gamma(4, size=1500)], k=25)
    fits = []
    for start in (-6.0, -1.0, 0.0, 2.0, 6.0):
        monkeypatch.setattr(yeo_johnson_table, "_STARTS", np.array([start]))
        fits.append(fit_table([table]))
    expected = fits[2]
    for fit in fits:
        assert fit.lam == pytest.approx(expected.lam, rel=1e-6, abs=1e-6)
        assert fit.quantiles(P) == pytest.approx(expected.quantiles(P), rel=1e-6)


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_linear_interpolation_of_public_histograms(name):
    # Oracle: exact fractions.
    case = HISTOGRAMS[name]
    expected = case["expected"]["linear_interpolation"]
    table = Table(case["edges"], [case["counts"]])
    if "NaN" in expected:
        with pytest.raises(ValueError, match="has no values"):
            table_quantiles(table, case["q"], method="linear")
        return
    assert table_quantiles(table, case["q"], method="linear") == pytest.approx(expected, rel=1e-12)
    for p, bracket in zip(case["q"], case["expected"]["bracketing_bin"], strict=True):
        if 0 < p < 1:
            found = estimate_from_table(table, [p], method="step", group=0, label="").bracket[0]
            assert found.tolist() == pytest.approx(bracket)


def test_step_is_the_smallest_limit_that_reaches_p():
    table = Table([0, 1, 2, 3], [[1, 2, 1]])
    assert table_quantiles(table, [0, 0.25, 0.26, 0.75, 1], method="step").tolist() == [0, 1, 2, 2, 3]


def test_interpolation_goes_through_the_limits(rng):
    table = bin_center([rng.normal(size=400)], k=20)
    inside = table.cdf()[1:-1]
    assert table_quantiles(table, inside, method="interpolation") == pytest.approx(table.limits[1:-1], rel=1e-9)


def test_yeo_johnson_and_interpolation_of_normal_data_are_near_the_truth(rng):
    table = bin_center([rng.normal(10, 2, size=20_000)], k=100)
    truth = stats.norm.ppf(P, 10, 2)
    for method in ("yeo-johnson", "interpolation"):
        assert table_quantiles(table, P, method=method) == pytest.approx(truth, abs=0.15)


@given(st.integers(0, 10_000), st.sampled_from(QUANTILE_METHODS), st.sampled_from(["normal", "gamma", "mixed", "ties"]))
def test_quantiles_never_decrease(seed, method, kind):
    rng = np.random.default_rng(seed)
    draw = {
        "normal": lambda: rng.normal(size=150),
        "gamma": lambda: -rng.gamma(0.6, size=150) * 1e5,
        "mixed": lambda: np.concatenate((rng.normal(size=60), 50 + rng.normal(size=90))),
        "ties": lambda: rng.integers(-3, 9, 150).astype(float),
    }[kind]
    table = join_center(bin_center([draw()], k=10, ends=Ends.buffer()), [draw()], k=10, ends=Ends.buffer())
    found = table_quantiles(table, np.linspace(0, 1, 41), method=method)
    assert not np.isnan(found).any()
    assert (np.diff(found[np.isfinite(found)]) >= -1e-9 * np.abs(found[np.isfinite(found)]).max()).all()


@pytest.mark.parametrize("method", ["step", "linear"])
def test_rescaling_rescales_exactly(rng, method):
    table = bin_center([rng.normal(size=300)], k=10, ends=Ends.buffer())
    scaled = Table(4 * table.limits, table.counts)
    assert np.array_equal(table_quantiles(scaled, P, method=method), 4 * table_quantiles(table, P, method=method))


def test_several_tables_pool(rng):
    values = [rng.gamma(4, size=400) for _ in range(4)]
    tables = [bin_center([part], k=20, ends=Ends.buffer()) for part in values]
    middle = [0.25, 0.5, 0.75]
    truth = np.quantile(np.concatenate(values), middle)
    for method in QUANTILE_METHODS:
        assert table_quantiles(tables, middle, method=method) == pytest.approx(truth, rel=0.05)
    assert table_quantiles([tables[0]] * 3, P) == pytest.approx(table_quantiles(tables[0], P), rel=1e-6)


@pytest.mark.parametrize("method", ["yeo-johnson", "step"])
def test_confidence_limits_cover_as_often_as_stated(method):
    # 600 seeded samples for which the model is right: a standard error of 0.009.
    rng = np.random.default_rng(11)
    truth = inverse_yeo_johnson(2 + 0.5 * stats.norm.ppf([0.1, 0.5, 0.9]), 0.3)
    covered = np.zeros(3)
    for _ in range(600):
        table = bin_center([inverse_yeo_johnson(rng.normal(2, 0.5, size=300), 0.3)], k=10)
        found = estimate_from_table(table, [0.1, 0.5, 0.9], method=method, group=0, label="")
        covered += (found.low <= truth) & (truth <= found.high)
    assert (covered / 600 > 0.95 - 4 * 0.009).all()
    if method == "yeo-johnson":
        assert (covered / 600 < 0.95 + 4 * 0.009).all()


def test_three_bins_fit_a_normal_distribution_exactly():
    table = Table([-np.inf, 0, 1, np.inf], [[30, 40, 30]])
    fit = fit_table([table])
    assert fit.lam == 1
    assert fit.quantiles([0.3, 0.7]) == pytest.approx([0, 1], abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "options", "rule"),
    [
        ((Table([0, 1], [[5]]), [0.5]), {}, "at least three bins"),
        ((Table([0, 1, 2, 3], [[5, 0, 5]]), [0.5]), {}, "at least three bins"),
        ((Table([0, 1], [[0]]), [0.5]), {}, "has no values"),
        (([], [0.5]), {}, "at least one table"),
        ((Table([0, 1], [[5]]), [1.5]), {"method": "step"}, "between 0 and 1"),
        ((Table([0, 1], [[5]]), []), {"method": "step"}, "between 0 and 1"),
        ((Table([0, 1], [[5]]), [math.nan]), {"method": "step"}, "between 0 and 1"),
        ((Table([0, 1], [[5]]), [0.5]), {"method": "spline"}, "'yeo-johnson', 'interpolation', 'linear', 'step'"),
        ((Table([-np.inf, 1, 2], [[5, 5]]), [0.1]), {"method": "linear"}, "finite ends"),
    ],
)
def test_what_has_no_answer_says_why(arguments, options, rule):
    with pytest.raises(ValueError, match=rule):
        table_quantiles(*arguments, **options)


@pytest.mark.parametrize("method", QUANTILE_METHODS)
def test_one_probability_gives_one_number(rng, method):
    table = bin_center([rng.gamma(4, size=200)], k=10, ends=Ends.buffer())
    assert float(table_quantiles(table, 0.5, method=method)) == table_quantiles(table, [0.5], method=method)[0]


def test_the_ends_of_the_distribution_have_no_doubt(rng):
    found = estimate_from_table(
        bin_center([rng.gamma(4, size=300)], k=10), [0, 0.5, 1], method="yeo-johnson", group=0, label=""
    )
    assert (found.low[0], found.high[0], found.high[2]) == (found.estimates[0], found.estimates[0], math.inf)
    assert found.low[1] < found.estimates[1] < found.high[1]


@pytest.mark.parametrize("unit", [1e-290, 1e-150, 1e-90, 1e90, 1e290])
@pytest.mark.parametrize("offset", [0.0, -3.0, 1e5])
def test_units_of_any_size_give_numbers(rng, unit, offset):
    values = unit * (rng.normal(size=400) + offset)
    found = table_quantiles(bin_center([values], k=20), P)
    assert found == pytest.approx(np.quantile(values, P), abs=0.5 * unit)
