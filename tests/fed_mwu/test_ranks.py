import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fed_mwu import CenterStatistic, center_statistic, pairs
from fed_mwu.ranks import ALTERNATIVES, log_normal_pvalue

SMALL = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)
EXTREME = st.lists(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-310, 1.0, -1.0, 1.0 + 2**-52, 1e308, -1e308, math.inf, -math.inf])
    | st.floats(allow_nan=False),
    min_size=1,
    max_size=12,
)


def double_loop(x, y):
    """The definition, pair by pair, and the variance from METHODS 6 as it is written there."""
    u = sum((b > a) - (b < a) for a in x for b in y)
    n, m = len(x), len(y)
    total = n + m
    ties = [sum(v == w for v in [*x, *y]) for w in set(x) | set(y)]
    if total < 2:
        return u, 0.0
    return u, n * m * (total + 1) / 3 * (1 - sum(t**3 - t for t in ties) / (total * (total**2 - 1)))


def searched(x, y):
    """The statistic by the way that needs no keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_count_floats", lambda x, y, *_: pairs._count_searching(x, y))
        return center_statistic(x, y)


@given(SMALL, SMALL)
def test_equals_a_double_loop_on_tied_data(x, y):
    found = center_statistic(x, y)
    u, variance = double_loop(x, y)
    assert found.u == u
    assert found.variance == pytest.approx(variance, rel=1e-12, abs=1e-12)


@given(EXTREME, EXTREME)
def test_equals_a_double_loop_on_extreme_values(x, y):
    found = center_statistic(x, y)
    assert found.u == double_loop(x, y)[0]
    assert found.variance == pytest.approx(double_loop(x, y)[1], rel=1e-12, abs=1e-12)


@given(EXTREME, EXTREME)
def test_both_ways_of_counting_agree(x, y):
    assert center_statistic(x, y) == searched(x, y)


@pytest.mark.parametrize(("x", "y"), [([0.0, 1.5, -2.0], [-0.0, 1.5, 7.0]), ([5e-324, 0.0], [0.25, -5e-324])])
def test_ordinary_values_are_counted_without_searching(x, y, monkeypatch):
    monkeypatch.setattr(pairs, "_count_searching", None)
    assert center_statistic(x, y).u == double_loop(x, y)[0]


@pytest.mark.parametrize("edge", [math.inf, 1e308])
def test_values_that_keys_cannot_carry_are_searched(edge, monkeypatch):
    monkeypatch.setattr(pairs, "_count_sorted", None)
    x, y = [edge, 5e-324, -edge], [edge, 0.0, 1e-323]
    assert center_statistic(x, y).u == double_loop(x, y)[0]
    assert center_statistic([edge, 2.0], [2.0 + 2**-51]).u == 0  # below 1e308 these two round to one key


@given(EXTREME, EXTREME)
def test_exchanging_the_groups_turns_the_sign(x, y):
    there, back = center_statistic(x, y), center_statistic(y, x)
    assert (there.u, there.variance) == (-back.u, back.variance)
    assert there.log_pvalue("greater") == back.log_pvalue("less")
    assert there.log_pvalue() == back.log_pvalue()


@given(SMALL, SMALL, st.permutations([0.25, 7.0, 1e200]))
def test_does_not_depend_on_the_scale(x, y, factors):
    scaled = center_statistic(np.multiply(x, factors[0]), np.multiply(y, factors[0]))
    assert scaled == center_statistic(x, y)


@pytest.mark.parametrize("decimals", [0, 1, 12])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("continuity", [False, True])
def test_pvalue_equals_scipy(rng, decimals, alternative, continuity):
    for n, m in ((5, 9), (40, 30), (400, 500)):
        x, y = rng.normal(size=n).round(decimals), rng.normal(0.2, 1.3, size=m).round(decimals)
        theirs = stats.mannwhitneyu(y, x, alternative=alternative, method="asymptotic", use_continuity=continuity)
        ours = center_statistic(x, y)
        assert ours.u == 2 * theirs.statistic - n * m
        assert math.exp(ours.log_pvalue(alternative, continuity=continuity)) == pytest.approx(theirs.pvalue, rel=1e-12)


@pytest.mark.parametrize("spread", [40, 3_000, 10**15])
def test_block_borders_do_not_matter(rng, spread):
    # Heavy, some and no ties across the borders of the blocks, against searching, which has no blocks.
    x, y = rng.integers(-spread, spread, 90_000), rng.integers(-spread, spread + 9, 80_000)
    assert center_statistic(x, y) == searched(x, y)


def test_a_single_tie_across_a_block_border():
    # All values differ but one pair, wherever it lies: the closed form of one tie of 2.
    x = np.arange(1.0, 2 * pairs._BLOCK + 9)
    total = x.size + 1
    for at in (0, pairs._BLOCK - 2, pairs._BLOCK - 1, pairs._BLOCK, 2 * pairs._BLOCK - 1, x.size - 1):
        found = center_statistic(x, x[at : at + 1])
        assert found.u == 2 * at + 1 - x.size
        assert found.variance == x.size * (total**3 - (total - 2) - 8) / (3 * total * (total - 1))


def test_sizes_do_not_overflow():
    # Two values, 3 million observations each: n m and t^3 leave 64-bit integers; the closed form is from METHODS 6.
    half = 1_500_000
    x, y = np.repeat([0.0, 1.0], [half, half]), np.repeat([0.0, 1.0], [half - 1, half + 1])
    found = center_statistic(x, y)
    n, t0, t1 = 2 * half, 2 * half - 1, 2 * half + 1
    assert found.u == half * (half + 1) - half * (half - 1)
    assert found.variance == n * n * ((2 * n) ** 3 - t0**3 - t1**3) / (3 * 2 * n * (2 * n - 1))


def test_whole_numbers_beyond_float64_stay_apart():
    big = 2**53
    assert center_statistic([big], [big + 1]).u == 1
    assert center_statistic(np.array([big], dtype=np.uint64), [big + 1]).u == 1
    assert center_statistic([-big], [-big - 1]).u == -1
    assert center_statistic([2**63 - 1], [-(2**63)]).u == -1


def test_other_whole_numbers_are_compared_as_float64():
    assert center_statistic(np.array([2**64 - 1], dtype=np.uint64), [1]).u == -1
    assert center_statistic([2**53 + 1], [2.0**53]).variance == 0  # 2**53 + 1 is no float64
    assert center_statistic([1, 2], [1.5]).u == 0


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([True, False, False], [True, True]),
        (np.array([1, 0, 0], dtype=np.float32), np.array([1, 1], dtype=np.int8)),
        (["1", "0", "0"], ["1", "1"]),
        ([math.inf, None, 0, 0], [math.inf, math.nan, math.inf]),
        (np.ma.masked_array([1, 0, 0, 9], [0, 0, 0, 1]), [1, 1]),
    ],
)
def test_accepts_all_that_stands_for_numbers(x, y):
    found = center_statistic(x, y)
    assert (found.n, found.m, found.u) == (3, 2, 4)


def test_counts_what_is_missing():
    found = center_statistic([math.nan, 1, 2], [3, math.nan, math.nan])
    assert (found.n_missing, found.m_missing, found.n, found.m, found.u) == (1, 2, 2, 1, 2)


@pytest.mark.parametrize(
    ("values", "error", "rule"),
    [
        (["1", "secret"], TypeError, "stands for no number"),
        ([1 + 2j], TypeError, "real numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, "real numbers"),
        ([[1, 2]], ValueError, "one-dimensional"),
        ([["secret"], [1, 2]], ValueError, "one-dimensional"),
        ([object()], TypeError, "stands for no number"),
        (np.ma.masked_array(["1", "secret"]), TypeError, "stands for no number"),
        (np.ma.masked_array([1 + 2j]), TypeError, "real numbers"),
        ([10**400], TypeError, "stands for no number"),
    ],
)
def test_bad_data_name_the_rule_and_quote_nothing(values, error, rule):
    with pytest.raises(error, match=rule) as caught:
        center_statistic([1.0], values)
    assert "y must" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_inputs_stay_as_they_are(rng):
    for x in (rng.normal(size=100), np.array([math.nan, -0.0, 1.0]), np.arange(9)):
        x.flags.writeable = False
        center_statistic(x, x)  # numpy refuses to write


def test_the_effect_size_counts_ties_by_half():
    assert center_statistic([1, 2], [2, 3]).superiority == (3 + 0.5) / 4


def test_all_tied_is_no_information():
    found = center_statistic([0.0, -0.0, 0.0], [0.0, -0.0])
    assert (found.u, found.variance, found.z, found.superiority) == (0, 0, 0, 0.5)
    assert [found.log_pvalue(alternative) for alternative in ALTERNATIVES] == [0, 0, 0]


def test_an_empty_group_has_no_pvalue():
    found = center_statistic([math.nan], [1, 2])
    assert (found.n, found.u, found.variance, found.n_missing) == (0, 0, 0, 1)
    assert all(map(math.isnan, (found.z, found.log_pvalue(), found.superiority)))


def test_tiny_pvalues_stay_ordered():
    # mpmath at 50 digits: log(2 Phi(-40)) and log(2 Phi(-60)).
    assert log_normal_pvalue(40.0, "two-sided") == pytest.approx(-803.91529483319384, rel=1e-12)
    assert log_normal_pvalue(60.0, "two-sided") == pytest.approx(-1804.3204135000072, rel=1e-12)
    tails = [center_statistic(range(n), range(n, 2 * n)).log_pvalue("greater") for n in (3_000, 6_000, 9_000)]
    assert math.exp(tails[0]) == 0
    assert tails[0] > tails[1] > tails[2]


def test_the_continuity_correction_stops_at_no_effect():
    # R: CORRECTION is sign(z) / 2 for two sides, a half in the direction of the alternative for one.
    even = center_statistic([1, 4], [2, 3])
    assert even.u == 0
    assert even.log_pvalue(continuity=True) == 0
    z = 1 / math.sqrt(even.variance)
    one_sided = [even.log_pvalue(alternative, continuity=True) for alternative in ("greater", "less")]
    assert one_sided == pytest.approx([stats.norm.logsf(-z)] * 2, rel=1e-12)


def test_an_unknown_alternative_lists_the_known_ones():
    with pytest.raises(ValueError, match="'two-sided', 'greater', 'less'"):
        center_statistic([1], [2]).log_pvalue("both")


@pytest.mark.parametrize(
    "numbers",
    [
        (10, 10, 101, 700),  # |u| > nm
        (10, 10, 50, 701),  # more variance than without ties
        (10, 10, 50, 100),  # u^2 > (N - 1) V
        (10, 10, 1, 0),  # no variance, yet a difference
        (10, 10, math.nan, 700),
        (-1, 10, 0, 0),
        (10, 10, 0, -1),
        (10, 10, 0, 700, -1),
        (math.inf, 10, 0, 0),
        (10, 0, 1, 0),
    ],
)
def test_contradictory_statistics_are_refused(numbers):
    with pytest.raises(ValueError, match="must"):
        CenterStatistic(*map(float, numbers))


@given(SMALL, SMALL)
def test_every_true_statistic_is_accepted(x, y):
    found = center_statistic(x, y)
    assert CenterStatistic(found.n, found.m, found.u, found.variance).u == found.u
