import math

import numpy as np
import pytest

from fed_mwu import Table


def test_sizes_bins_and_groups():
    table = Table([0, 1, 2, 4], [[1, 2, 3], [4, 5, 6]])
    assert (table.n_bins, table.n_groups, table.sizes.tolist()) == (3, 2, [6, 15])


def test_cdf_ends_at_one():
    assert Table([0, 1, 2, 4], [[1, 2, 1]]).cdf().tolist() == [0, 0.25, 0.75, 1]
    assert Table([0, 1, 2], [[1 / 3, 2 / 3 + 1e-9], [0, 5]]).cdf(1).tolist() == [0, 0, 1]


def test_an_empty_group_has_no_cdf():
    with pytest.raises(ValueError, match="group 1 of this table is empty"):
        Table([0, 1], [[1], [0]]).cdf(1)


@pytest.mark.parametrize(
    ("counts", "private"), [([0, 3], True), ([2.9, 3], False), ([3 - 1e-12, 0], True), ([1e-9, 3], False)]
)
def test_private_is_zero_or_at_least_k(counts, private):
    assert Table([0, 1, 2], [counts]).is_private(3) is private


@pytest.mark.parametrize(
    ("limits", "counts", "rule"),
    [
        ([0, 1, 1], [[1, 1]], "strictly increasing"),
        ([0, math.nan], [[1]], "strictly increasing"),
        ([0, 1], [[-1]], "not negative"),
        ([0, 1], [[math.inf]], "finite"),
        ([0, 1], [[1, 2]], "shapes"),
        ([0], [[]], "shapes"),
        ([0, 1], np.zeros((0, 1)), "shapes"),
        ([0, 1], [1], "2 dimension"),
        ([[0, 1]], [[1]], "1 dimension"),
    ],
)
def test_what_is_no_table_is_refused(limits, counts, rule):
    with pytest.raises(ValueError, match=rule):
        Table(limits, counts)


def test_a_table_is_frozen_and_apart_from_its_inputs():
    counts = np.ones((1, 1))
    table = Table([0, 1], counts)
    counts[0, 0] = 5
    assert table.counts[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        table.counts[0, 0] = 2
    with pytest.raises(AttributeError):
        table.counts = counts


def test_equal_tables_have_equal_hashes():
    one, same, other = Table([0, 1], [[1]]), Table([0, 1], [[1]]), Table([0, 1], [[2]])
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "table"


def test_the_layout_in_memory_is_always_the_same():
    turned = np.ones((3, 2)).T
    assert not turned.flags.c_contiguous
    assert Table([0, 1, 2, 3], turned).counts.flags.c_contiguous
