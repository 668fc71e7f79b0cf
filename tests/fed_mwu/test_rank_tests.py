import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fed_mwu import (
    CenterStatistic,
    Table,
    bin_center,
    center_statistic,
    combined_test,
    fisher_test,
    sum_test,
    table_test,
    weighted_test,
)
from fed_mwu.ranks import ALTERNATIVES

TESTS = {
    "sum": sum_test,
    "optimal": weighted_test,
    "van-elteren": lambda centers, **k: weighted_test(centers, weights="van-elteren", **k),
    "fisher": fisher_test,
}
SMALL = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=12)


@pytest.fixture
def centers(rng):
    return [center_statistic(rng.normal(size=n), rng.normal(0.3, size=n + 5).round(1)) for n in (20, 35, 60)]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(x=SMALL, y=SMALL)
def test_one_center_is_the_combined_test(alternative, x, y):
    combined = combined_test(x, y, alternative=alternative)
    for name in ("sum", "optimal", "van-elteren"):
        result = TESTS[name]([center_statistic(x, y)], alternative=alternative)
        assert result.pvalue == pytest.approx(combined.pvalue, rel=1e-12)
        assert result.superiority == pytest.approx(combined.superiority, rel=1e-12)
        assert result.confidence_interval() == pytest.approx(combined.confidence_interval(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_combined_is_scipy(rng, alternative):
    x, y = rng.normal(size=80), rng.normal(0.2, size=70)
    theirs = stats.mannwhitneyu(y, x, alternative=alternative, method="asymptotic", use_continuity=False)
    statistic, pvalue = combined_test(x, y, alternative=alternative)
    assert pvalue == pytest.approx(theirs.pvalue, rel=1e-12)
    assert statistic == pytest.approx((theirs.statistic - 40 * 70) / math.sqrt(80 * 70 * 151 / 12))


def test_the_table_approaches_the_combined_test_as_bins_get_fine(rng):
    x, y = rng.normal(size=4000), rng.normal(0.05, size=5000)
    combined = combined_test(x, y)
    errors = [abs(table_test(bin_center([x, y], k=k, max_bins=0)).statistic - combined.statistic) for k in (5, 50, 500)]
    assert errors[0] < 0.02
    assert errors[0] < errors[2]


@given(SMALL, SMALL)
def test_a_table_with_a_bin_for_each_value_is_the_combined_test(x, y):
    # Identity: with one bin per distinct value the table loses nothing.
    values = sorted({*x, *y})
    limits = [values[0] - 1, *values]
    counts = [[group.count(value) for value in values] for group in (x, y)]
    table, combined = table_test(Table(limits, counts)), combined_test(x, y)
    assert table.statistic == pytest.approx(combined.statistic, rel=1e-12, abs=1e-12)
    assert table.superiority == pytest.approx(combined.superiority, rel=1e-12)


def test_the_table_statistic_is_its_definition(rng):
    # METHODS 6, term by term.
    x, y = rng.integers(0, 50, (2, 12)) / 3
    n, m = x.sum(), y.sum()
    u = sum(y[i] * (x[:i].sum() - x[i + 1 :].sum()) for i in range(12))
    t, total = x + y, n + m
    variance = n * m * (total + 1) / 3 * (1 - (t**3 - t).sum() / (total * (total**2 - 1)))
    assert table_test(Table(range(13), [x, y])).statistic == pytest.approx(u / math.sqrt(variance), rel=1e-12)


def test_fisher_is_scipys_combination(centers):
    for alternative in ALTERNATIVES:
        pvalues = [math.exp(c.log_pvalue(alternative)) for c in centers]
        theirs = stats.combine_pvalues(pvalues, method="fisher")
        result = fisher_test(centers, alternative=alternative)
        assert tuple(result) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-12)


def test_fisher_stays_exact_in_the_far_tail():
    # mpmath: gammainc(3, 1000, inf, regularized=True) is e^-1000 (1 + 1000 + 1000^2 / 2).
    center = CenterStatistic(1000.0, 1000.0, 1e6, 1000.0**2 * 2001 / 3)
    result = fisher_test([center] * 3)
    h = result.statistic / 2
    assert result.log_pvalue == pytest.approx(-h + math.log(1 + h + h * h / 2), rel=1e-13)
    assert result.pvalue == 0


def test_the_weighted_statistic_is_the_papers(centers):
    weights = np.array([c.n * c.m / math.sqrt(c.variance) for c in centers])
    z = np.array([c.u / math.sqrt(c.variance) for c in centers])
    expected = (weights * z).sum() / math.sqrt((weights**2).sum())
    assert weighted_test(centers).statistic == pytest.approx(expected, rel=1e-13)


def test_optimal_weights_are_the_best_weights(centers):
    # For a constant P(Y > X) - P(Y < X) no other weights give a larger mean of the statistic.
    def mean(of_u):
        signal = sum(w * c.n * c.m for w, c in zip(of_u, centers, strict=True))
        return signal / math.sqrt(sum(w * w * c.variance for w, c in zip(of_u, centers, strict=True)))

    best = mean([c.n * c.m / c.variance for c in centers])
    assert all(best >= mean(w) for w in ([1, 1, 1], [1 / (c.n + c.m + 1) for c in centers], [1, 2, 3], [3, 2, 1]))


@pytest.mark.parametrize("name", TESTS)
def test_the_order_of_the_centers_does_not_matter(centers, name):
    assert TESTS[name](centers[::-1]).pvalue == pytest.approx(TESTS[name](centers).pvalue, rel=1e-12)


@pytest.mark.parametrize("name", TESTS)
def test_centers_without_information_change_no_pvalue(centers, name):
    with_them = TESTS[name]([*centers, center_statistic([1, 1], [1]), center_statistic([], [1, 2])])
    assert with_them.pvalue == pytest.approx(TESTS[name](centers).pvalue, rel=1e-12)


@pytest.mark.parametrize("name", TESTS)
def test_all_tied_everywhere_is_p_1(name):
    for alternative in ALTERNATIVES:
        result = TESTS[name]([center_statistic([1, 1], [1, 1])], alternative=alternative)
        assert (result.pvalue, result.superiority) == (1, 0.5)
        assert result.confidence_interval() == (0, 1)


@pytest.mark.parametrize("name", TESTS)
def test_no_center_with_both_groups_is_an_error(name):
    for centers in ([], [center_statistic([], [1])]):
        with pytest.raises(ValueError, match="both groups"):
            TESTS[name](centers)


def test_directions(centers):
    up = [center_statistic([1, 2, 3, 4], [5, 6, 7, 8])]
    for test in TESTS.values():
        assert test(up, alternative="greater").pvalue < 0.05 < test(up, alternative="less").pvalue
        assert test(up).superiority == 1


def test_fisher_says_that_it_knows_no_direction():
    up, down = center_statistic(range(20), range(15, 35)), center_statistic(range(15, 35), range(20))
    result = fisher_test([up, down])
    assert result.pvalue < 1e-6
    assert any("opposite directions" in note for note in result.notes)
    assert not any("opposite" in note for note in fisher_test([up, up]).notes)
    assert sum_test([up, down]).pvalue == 1


@pytest.mark.parametrize("test", [*TESTS.values()])
def test_unknown_alternatives_are_refused(centers, test):
    with pytest.raises(ValueError, match="alternative must be one of"):
        test(centers, alternative="both")


def test_unknown_weights_are_refused(centers):
    with pytest.raises(ValueError, match="'optimal', 'van-elteren'"):
        weighted_test(centers, weights="equal")


@pytest.mark.parametrize("n_groups", [1, 3])
def test_a_table_test_needs_two_groups(n_groups):
    with pytest.raises(ValueError, match="2 groups"):
        table_test(Table([0, 1, 2], np.ones((n_groups, 2))))


def test_a_table_test_needs_values_in_both_groups():
    with pytest.raises(ValueError, match="both groups"):
        table_test(Table([0, 1], [[5], [0]]))
    assert table_test(Table([0, 1], [[5], [5]])).pvalue == 1
