import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fed_mwu import Ends, bin_center
from fed_mwu.limits import DEFAULT_KEY, interior_limits

GAPS = st.lists(st.floats(allow_nan=False), min_size=2, max_size=2, unique=True).map(sorted)


@given(st.lists(GAPS, min_size=1, max_size=5), st.binary(max_size=40))
def test_a_limit_lies_inside_its_gap(gaps, key):
    left, right = np.array(gaps).T
    limits = interior_limits(left, right, key=key)
    assert (left <= limits).all()
    assert (limits < right).all()
    room = np.nextafter(left, np.inf) < right
    assert (limits[room] > left[room]).all()
    assert np.isfinite(limits[room]).all()


@pytest.mark.parametrize("left", [1.0, -1.0, 1e300, 5e-324, 3.0])
def test_a_gap_with_one_number_in_it_gives_that_number(left):
    middle = math.nextafter(left, math.inf)
    gap = np.array([left]), np.array([math.nextafter(middle, math.inf)])
    assert {float(interior_limits(*gap, key=bytes([i]))[0]) for i in range(50)} == {middle}


def test_asking_again_gives_the_same_limit_and_another_key_another():
    left, right = np.arange(10.0), np.arange(1.0, 11.0)
    first = interior_limits(left, right, key=b"one")
    assert np.array_equal(first, interior_limits(left, right, key=b"one"))
    assert not np.isclose(first, interior_limits(left, right, key=b"two")).any()


def test_a_limit_depends_on_its_own_gap_only():
    left, right = np.arange(10.0), np.arange(1.0, 11.0)
    together = interior_limits(left, right, key=b"k")
    apart = [interior_limits(left[i : i + 1], right[i : i + 1], key=b"k")[0] for i in range(10)]
    assert np.array_equal(together, apart)


def test_places_are_uniform():
    # Kolmogorov-Smirnov against the uniform distribution; the key is fixed, so is the answer.
    left = np.arange(20_000.0)
    places = interior_limits(left, left + 1, key=b"k") - left
    assert stats.kstest(places, "uniform").pvalue > 0.01
    # Neighbouring gaps are independent.
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.02


def test_minus_zero_is_zero():
    one = np.array([1.0])
    assert interior_limits(np.array([-0.0]), one, key=b"k") == interior_limits(np.array([0.0]), one, key=b"k")


def test_buffers_are_a_mean_gap_wide():
    # First bin 0, 1, 2, 3 and last bin 10, 12, 14, 16: mean gaps 1 and 2.
    table = bin_center([[0, 1, 2, 3, 10, 12, 14, 16]], k=4, ends=Ends.buffer())
    assert (table.limits[0], table.limits[-1]) == (-1, 18)


def test_a_buffer_of_equal_values_has_no_width():
    table = bin_center([[1.0] * 5 + [2.0] * 5], k=5, ends=Ends.buffer())
    assert (table.limits[0], table.limits[-1]) == (1, 2)


def test_a_buffer_too_small_to_move_a_large_number_still_moves_it():
    big = 2.0**60
    table = bin_center([[big] * 50 + [math.nextafter(big, math.inf)] * 50], k=100, ends=Ends.buffer())
    assert table.limits[0] < big
    assert table.limits[-1] > math.nextafter(big, math.inf)


def test_buffers_of_the_largest_numbers_do_not_overflow_into_an_error():
    largest = np.finfo(float).max
    table = bin_center([[-largest, largest]], k=2, ends=Ends.buffer())
    assert table.limits.tolist() == [-math.inf, math.inf]


def test_natural_ends_are_the_given_ones():
    assert bin_center([[0, 1, 5, 6]], k=2, ends=Ends.natural(0, 6)).limits[[0, -1]].tolist() == [0, 6]


@pytest.mark.parametrize("limits", [(1, 1), (2, 1), (math.nan, 1)])
def test_natural_ends_must_increase(limits):
    with pytest.raises(ValueError, match="low < high"):
        Ends.natural(*limits)


def test_unknown_ends_list_the_known_ones():
    with pytest.raises(ValueError, match="'open', 'buffer', 'natural'"):
        Ends("closed")


def test_the_default_key_is_no_secret():
    assert b"public" in DEFAULT_KEY
