import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fed_mwu import Ends, bin_center
from fed_mwu.errors import BelowK, OutsideEnds
from fed_mwu.table import are_private
from samples import centers, federations


def scan_two_groups(x, y, k):
    """METHODS 2 for two groups, word by word: scan the distinct values, no search. Returns counts (B, 2)."""
    groups = [sorted(x), sorted(y)]
    distinct = sorted({*x, *y})
    bins = []  # [largest value, count x, count y]
    end = -math.inf

    def count(low, high):
        return [sum(low < v <= high for v in group) for group in groups]

    def private(counts):
        return all(c == 0 or c >= k for c in counts)

    while any(v > end for v in distinct):
        for a in distinct:  # step 1
            if a > end and private(c := count(end, a)) and max(c) >= k:
                bins.append([a, *c])
                end = a
                break
        else:  # step 2
            left = [[v for v in group if v > end] for group in groups]
            few = [group[-1] for group in left if 0 < len(group) < k]
            start = bins[-2][0] if len(bins) > 1 else -math.inf
            end = min(few)
            bins[-1] = [end, *count(start, end)]
    while wrong := [j for j, b in enumerate(bins) if not private(b[1:])]:  # step 3
        j = max(wrong[0], 1)
        bins[j - 1 : j + 1] = [[bins[j][0], bins[j - 1][1] + bins[j][1], bins[j - 1][2] + bins[j][2]]]
    return np.array([b[1:] for b in bins])


@given(st.integers(1, 6).flatmap(lambda k: st.tuples(st.just(k), centers(2, k))))
def test_equals_a_scan_of_the_values(drawn):
    k, (x, y) = drawn
    counts = scan_two_groups(x, y, k)
    table = bin_center([x, y], k=k, max_bins=0)
    if table.n_bins == len(counts):  # a bin between neighbouring numbers may have no limit of its own
        assert np.array_equal(table.counts.T, counts)
    else:
        assert any(math.nextafter(a, math.inf) in {*x, *y} for a in {*x, *y})


@given(federations(), st.sampled_from([0, 1, 3, 1000]), st.sampled_from(["open", "buffer", "natural"]))
def test_every_table_keeps_the_rules(drawn, max_bins, ends):
    k, drawn_centers = drawn
    chosen = {"open": Ends.open(), "buffer": Ends.buffer(), "natural": Ends.natural(-1e301, 1e301)}[ends]
    for groups in drawn_centers:
        table = bin_center(groups, k=k, ends=chosen, max_bins=max_bins)
        assert table.is_private(k)
        assert (table.counts >= k).any(axis=0).all()
        assert table.sizes.tolist() == [group.size for group in groups]
        assert (np.diff(table.limits) > 0).all()
        assert not max_bins or table.n_bins <= max_bins
        # Counts are what the limits say, found by comparing each value with each limit.
        for group, counts in zip(groups, table.counts, strict=True):
            below = np.array([(group <= limit).sum() for limit in table.limits[1:]])
            assert np.array_equal(np.diff(below, prepend=0), counts)


@given(federations())
def test_no_limit_is_a_value_if_there_is_room_beside_it(drawn):
    k, drawn_centers = drawn
    for groups in drawn_centers:
        values = np.unique(np.concatenate(groups))
        for limit in bin_center(groups, k=k).limits[1:-1]:
            if limit in values:
                above = values[values > limit]
                assert above.size
                assert above[0] == np.nextafter(limit, np.inf)


@given(federations(), st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(drawn, random):
    k, drawn_centers = drawn
    for groups in drawn_centers:
        shuffled = [random.sample(group.tolist(), group.size) for group in groups]
        assert bin_center(shuffled, k=k) == bin_center(groups, k=k)


def test_paper_example_of_one_group():
    # Twelve different values, K = 5: two bins, the last one takes the rest.
    assert bin_center([range(12)], k=5).counts.tolist() == [[5, 7]]


def test_the_other_group_goes_on_alone():
    # x ends at 4; y's later values form bins of their own.
    table = bin_center([[1, 2, 3, 4], [1, 2, 3, 4, 10, 11, 12, 13]], k=2)
    assert table.counts.tolist() == [[2, 2, 0, 0], [2, 2, 2, 2]]


def test_a_stretched_first_bin_takes_its_right_neighbour():
    # x has one value left, which stretches the first bin over one y: too few, and nothing on the left to join with.
    x, y = [1.0, 2.0, 5.0], [4.0, 6.0, 7.0, 8.0, 9.0]
    table = bin_center([x, y], k=2)
    assert table.counts.tolist() == [[3, 0], [3, 2]]


def test_a_stretched_bin_takes_its_left_neighbour():
    # x's last value stretches the second bin over a single y; the first bin has two more to go with it.
    x, y = [1.0, 2.0, 3.0, 4.0, 7.0], [1.2, 1.3, 6.0, 8.0, 9.0, 10.0, 11.0]
    table = bin_center([x, y], k=2)
    assert table.counts.tolist() == [[5, 0, 0], [3, 2, 2]]


def test_a_raised_k_caps_the_bins(rng):
    x, y = rng.normal(size=5000), rng.normal(size=5000)
    capped = bin_center([x, y], k=10, max_bins=100)
    assert np.array_equal(capped.counts, bin_center([x, y], k=100, max_bins=0).counts)
    assert capped.n_bins <= 100


def test_a_small_group_beside_a_large_one_keeps_its_own_k(rng):
    # With K raised to 100 for both, the 50 values of x would fill one bin and say nothing about their place.
    x, y = rng.normal(size=50), rng.normal(size=100_000)
    table = bin_center([x, y], k=10)
    assert (table.counts[0] > 0).sum() >= 3
    assert table.is_private(10)


def test_nan_is_left_out_and_infinities_are_values():
    table = bin_center([[1, 2, math.nan, -math.inf, math.inf, 3]], k=2)
    assert table.sizes.tolist() == [5]
    assert np.isfinite(table.limits[1:-1]).all()


def test_all_values_tied_make_one_bin():
    for ends in (Ends.open(), Ends.buffer(), Ends.natural(0, 1)):
        table = bin_center([[1.0] * 20, [1.0] * 30], k=10, ends=ends)
        assert table.counts.tolist() == [[20], [30]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, bool])
def test_other_number_types_give_the_same_table(dtype):
    values = np.array([0, 1, 1, 0, 1, 0, 1, 1]).astype(dtype)
    assert bin_center([values], k=3) == bin_center([values.astype(float)], k=3)


def test_fewer_than_k_is_refused_without_a_size():
    with pytest.raises(BelowK, match="group 1 has fewer than k=10 values") as caught:
        bin_center([range(20), [7777.0] * 3], k=10)
    assert "3" not in str(caught.value)
    assert "7777" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "rule"),
    [
        ({"groups": [[], []], "k": 5}, ValueError, "no group has any value"),
        ({"groups": [], "k": 5}, ValueError, "at least one array"),
        ({"groups": [[1, 2]], "k": 0}, ValueError, "k must be at least 1"),
        ({"groups": [[1, 2]], "k": 1.5}, TypeError, "k must be a whole number"),
        ({"groups": [[1, 2]], "k": 1, "max_bins": -1}, ValueError, "max_bins must be at least 0"),
        ({"groups": [1, 2], "k": 1}, ValueError, r"groups\[0\] must be one-dimensional"),
        ({"groups": [["x"]], "k": 1}, TypeError, r"groups\[0\] must hold real numbers"),
        ({"groups": [[1, 2]], "k": 1, "ends": Ends.natural(1.5, 3)}, OutsideEnds, "must hold all values"),
        ({"groups": [[1, math.inf]], "k": 1, "ends": Ends.buffer()}, OutsideEnds, "need finite values"),
    ],
)
def test_wrong_arguments_name_the_rule(arguments, error, rule):
    with pytest.raises(error, match=rule):
        bin_center(**arguments)


@given(federations())
def test_private_means_zero_or_at_least_k(drawn):
    # The oracle of privacy itself: no tolerance is needed for whole numbers.
    k, drawn_centers = drawn
    counts = np.array([group.size for groups in drawn_centers for group in groups])
    assert np.array_equal(are_private(counts, k), [c == 0 or c >= k for c in counts])
