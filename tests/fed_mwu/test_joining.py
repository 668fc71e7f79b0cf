import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fed_mwu import Ends, Table, bin_center, join_center
from fed_mwu.binning import sorted_groups
from fed_mwu.errors import BelowK, NotPrivate
from fed_mwu.joining import join_sorted
from fed_mwu.limits import DEFAULT_KEY, OPEN
from fed_mwu.transit import check_joined
from samples import federations

OPTIONS = {"ends": OPEN, "key": DEFAULT_KEY, "max_bins": 1000}


def test_worked_example_of_the_paper():
    # METHODS 4, appendix of the paper. The last bin is not in its text; here the center has 11 and 11 there.
    table = Table([0, 2, 4, 6, 8], [[12, 10, 10, 11], [10, 10, 14, 11]])
    x = [0.5] * 3 + [3.0] * 7 + list(np.linspace(4.1, 5.9, 20)) + [7.0] * 11
    y = [1.0] * 4 + [3.5] * 10 + list(np.linspace(4.11, 5.91, 20)) + [7.0] * 11
    joined = join_center(table, [x, y], k=10)
    assert joined.limits[[0, 1, 2, 4, 5]].tolist() == [0, 2, 4, 6, 8]
    old = np.array([[12, 10, 5, 5, 11], [10, 10, 7, 7, 11]])
    increments = np.array([[10 * 12 / 22, 10 * 10 / 22, 10, 10, 11], [7, 7, 10, 10, 11]])
    assert np.allclose(joined.counts, old + increments, rtol=1e-12, atol=0)


def test_old_counts_divide_in_proportion():
    # The paper's example in words: 27 and two equal halves of the new center give 13.5 and 13.5.
    joined = join_center(Table([0, 10], [[27.0]]), [[1.0] * 5 + [2.0] * 5], k=5)
    assert (joined.counts - 5).tolist() == [[13.5, 13.5]]


def test_a_group_that_the_center_lacks_divides_by_the_total():
    joined = join_center(Table([0, 10], [[28.0], [28.0]]), [[], [1, 2, 3, 4, 5, 6, 7]], k=3)
    assert joined.counts.tolist() == [[12, 16], [15, 20]]


def test_a_split_that_would_leave_a_small_share_is_not_made():
    # By METHODS 4 alone the 4 of the group that the center lacks would become 2 and 2.
    joined = join_center(Table([0, 10], [[4.0], [30.0]]), [[], [1, 2, 3, 4, 5, 6]], k=3)
    assert joined.counts.tolist() == [[4], [36]]


def test_a_group_that_the_table_lacks_is_not_spread_thin():
    # 4 of x over two bins without x would be 2 and 2; they all go to the larger bin.
    table = Table([0, 2, 4], [[0.0, 0.0], [10.0, 20.0]])
    joined = join_center(table, [[1, 1, 3, 3], [1, 1, 1, 3, 3, 3]], k=3)
    assert joined.counts[0].tolist() == [0, 4]


def test_a_table_of_empty_bins_shares_alike():
    joined = join_center(Table([0, 1, 2, 3], [[0.0, 0.0, 0.0]]), [[0.5, 1.5, 2.5]], k=3)
    assert joined.counts.sum() == 3
    assert joined.is_private(3)
    assert join_center(Table([0, 1, 2], [[0.0, 0.0]]), [[0.5, 0.6, 1.5, 1.6]], k=2).counts.tolist() == [[2, 2]]


@given(federations(), st.sampled_from(["open", "buffer", "natural"]), st.sampled_from([0, 2, 1000]))
def test_every_join_keeps_the_rules(drawn, ends, max_bins):
    k, centers = drawn
    chosen = {"open": OPEN, "buffer": Ends.buffer(), "natural": Ends.natural(-1e301, 1e301)}[ends]
    table = bin_center(centers[0], k=k, ends=chosen)
    sizes = np.array([group.size for group in centers[0]], dtype=float)
    for groups in centers[1:]:
        joined = join_sorted(table, sorted_groups(groups), k=k, ends=chosen, key=DEFAULT_KEY, max_bins=max_bins)
        own = np.array([group.size for group in groups])
        sizes += own
        # Everything that leaves is private: the cells of the table and the center's own counts over united bins.
        assert joined.table.is_private(k)
        assert joined.contribution.is_private(k)
        assert joined.contribution.sizes.tolist() == own.tolist()
        assert np.allclose(joined.table.sizes, sizes, rtol=1e-9)
        assert (np.diff(joined.table.limits) > 0).all()
        assert np.isin(table.limits[1:-1], joined.table.limits).all()
        check_joined(table, joined.table, own)
        table = joined.table


@given(federations())
def test_the_increment_over_united_bins_is_what_the_center_has_there(drawn):
    # Oracle: comparing each value with each limit of the contribution.
    k, centers = drawn
    table = bin_center(centers[0], k=k)
    for groups in centers[1:]:
        joined = join_sorted(table, sorted_groups(groups), k=k, **OPTIONS)
        limits = joined.contribution.limits
        for group, counts in zip(groups, joined.contribution.counts, strict=True):
            below = np.array([(group <= limit).sum() for limit in limits[1:]])
            assert np.array_equal(np.diff(below, prepend=0), counts)
        # And what a reader gets by subtracting the old table from the new one over the old limits and united ends.
        ends = np.isin(joined.table.limits, limits) & np.isin(joined.table.limits, table.limits)
        positions = np.flatnonzero(ends)[1:]
        new = np.cumsum(joined.table.counts, axis=1)[:, positions - 1]
        old = np.cumsum(table.counts, axis=1)[
            :, np.flatnonzero(np.isin(table.limits, joined.table.limits[ends]))[1:] - 1
        ]
        own = np.array([[(group <= joined.table.limits[p]).sum() for p in positions] for group in groups])
        assert np.allclose(new - old, own, rtol=1e-9, atol=1e-6)
        table = joined.table


@given(federations(), st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(drawn, random):
    k, centers = drawn
    table = bin_center(centers[0], k=k)
    for groups in centers[1:]:
        shuffled = [random.sample(group.tolist(), group.size) for group in groups]
        assert join_center(table, shuffled, k=k) == join_center(table, groups, k=k)


@pytest.mark.parametrize("number", [2, 5])
def test_identical_centers_add_up(rng, number):
    groups = [rng.normal(size=80), rng.normal(size=90)]
    table = first = bin_center(groups, k=10)
    for _ in range(number - 1):
        table = join_center(table, groups, k=10)
    assert np.allclose(table.sizes, number * first.sizes, rtol=1e-12)
    coarse = [table.counts[:, (table.limits[1:] <= c)].sum(axis=1) for c in first.limits[1:]]
    assert np.allclose(np.diff(np.array(coarse), axis=0, prepend=0).T, number * first.counts, rtol=1e-9)


def test_joining_changes_neither_table_nor_values(rng):
    table = bin_center([rng.normal(size=50)], k=10)
    before, values = table.counts.copy(), rng.normal(size=60)
    kept = values.copy()
    join_center(table, [values], k=10)
    assert np.array_equal(table.counts, before)
    assert np.array_equal(values, kept)


def test_a_value_beyond_an_end_moves_it():
    table = Table([0, 5, 10], [[6.0, 6.0]])
    values = [-3, -2, -1, 1, 6, 7, 8, 15]
    assert join_center(table, [values], k=3).limits[[0, -1]].tolist() == [-np.inf, np.inf]
    # Buffers: mean gap of the center's own extreme bin, (1 - -3) / 3 and (15 - 6) / 3.
    moved = join_center(table, [values], k=3, ends=Ends.buffer()).limits[[0, -1]]
    assert np.allclose(moved, [-3 - 4 / 3, 15 + 3])
    inside = join_center(table, [[1, 2, 3, 6, 7, 8]], k=3)
    assert inside.limits[[0, -1]].tolist() == [0, 10]


def test_a_buffer_never_rests_on_a_single_value():
    # The center has one value in the first bin: its united bin, not that value, places the buffer.
    table = Table([0, 5, 10], [[6.0, 6.0]])
    joined = join_center(table, [[-4.0, 6.0, 7.0, 8.0]], k=3, ends=Ends.buffer())
    assert joined.limits[0] == -4 - 4


@pytest.mark.parametrize(
    ("groups", "error", "rule"),
    [
        ([[1, 2, 3]], ValueError, "as many as the table's, 2"),
        ([[1, 2], [1, 2, 3]], BelowK, "group 0"),
        ([[], []], ValueError, "no group has any value"),
    ],
)
def test_wrong_groups_name_the_rule(groups, error, rule):
    with pytest.raises(error, match=rule):
        join_center(Table([0, 5], [[10], [10]]), groups, k=3)


BEFORE = Table([0, 2, 4], [[10, 10]])


@pytest.mark.parametrize(
    ("after", "rule"),
    [
        (Table([0, 1, 4], [[15, 15]]), "limit of the table is gone"),
        (Table([0, 2, 3], [[15, 15]]), "end of the table moved"),
        (Table([0, 2, 4], [[9, 21]]), "shrank"),
        (Table([0, 2, 4], [[15, 16]]), "announced"),
        (Table([0, 2, 4], [[15, 15], [1, 1]]), "number of groups"),
    ],
)
def test_a_table_that_does_not_follow_from_the_old_one_is_refused(after, rule):
    with pytest.raises(NotPrivate, match=rule):
        check_joined(BEFORE, after, [10])


def test_an_honest_table_is_accepted():
    check_joined(BEFORE, Table([-1, 1, 2, 4], [[10, 5, 15]]), [10])
