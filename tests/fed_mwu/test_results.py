import math

import numpy as np
import pytest

from fed_mwu import CenterStatistic, center_statistic, combined_test, sum_test, weighted_test
from fed_mwu.results import format_pvalue


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_interval_leaves_out_one_half_exactly_when_the_test_rejects(rng, level):
    # Duality: the interval's variance at 1/2 is the variance of the test, ties or not.
    for _ in range(200):
        centers = [
            center_statistic(rng.integers(0, 9, 15), rng.integers(0, 9, 12) + rng.integers(0, 3)) for _ in range(3)
        ]
        for result in (sum_test(centers), weighted_test(centers), weighted_test(centers, weights="van-elteren")):
            low, high = result.confidence_interval(level)
            assert 0 <= low <= result.superiority <= high <= 1
            assert (low > 0.5 or high < 0.5) == (result.pvalue < 1 - level)


def test_the_interval_covers_as_often_as_it_says():
    # Normal shift with a known P(Y > X) = Phi(1/2); 2,000 samples, so a standard error of 0.005.
    rng = np.random.default_rng(5)
    truth = 0.5 * math.erfc(-0.5 / math.sqrt(2))
    shift = 0.5 * math.sqrt(2)
    covered = 0
    for _ in range(2000):
        low, high = combined_test(rng.normal(size=25), rng.normal(shift, size=30)).confidence_interval()
        covered += low <= truth <= high
    assert abs(covered / 2000 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_newcombe_2006_published_interval():
    # Complete separation of 10 and 10: the upper limit is 1, the lower one solves (1 - t)^2 = z^2 var(t).
    low, high = combined_test(range(10), range(10, 20)).confidence_interval()
    assert high == 1
    variance = low * (1 - low) * (1 + 9 * ((1 - low) / (2 - low) + low / (1 + low))) / 100
    assert (1 - low) == pytest.approx(1.959963984540054 * math.sqrt(variance), rel=1e-9)
    assert combined_test(range(10, 20), range(10)).confidence_interval() == pytest.approx((0, 1 - low))


@pytest.mark.parametrize("level", [0, 1, 95, math.nan])
def test_levels_are_between_0_and_1(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        combined_test([1, 2], [2, 3]).confidence_interval(level)


def test_a_result_is_frozen_and_unpacks():
    result = combined_test([1, 2, 3], [2, 3, 4])
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)
    with pytest.raises(AttributeError):
        result.statistic = 1


def test_text_and_html():
    result = combined_test([1, 2, 3], [2, 3, 4])
    assert str(result).startswith("combined: statistic ")
    assert result._repr_html_().startswith("<p>combined")


@pytest.mark.parametrize(
    ("log_pvalue", "text"),
    [
        (0.0, "1.0000"),
        (math.log(0.04), "0.0400"),
        (math.log(3.25e-7), "3.250e-07"),
        (-1000 * math.log(10), "1.000e-1000"),
        (math.log(9.9999e-6), "1.000e-05"),
        (math.nan, "nan"),
    ],
)
def test_pvalues_are_written_from_their_logarithm(log_pvalue, text):
    assert format_pvalue(log_pvalue) == text


def test_a_pvalue_below_the_smallest_number_keeps_its_logarithm():
    result = sum_test([CenterStatistic(1e6, 1e6, 1e12, 1e12 * (2e6 + 1) / 3)])
    assert result.pvalue == 0
    assert result.log_pvalue < -1e5
