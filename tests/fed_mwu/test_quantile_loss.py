import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_files import decode, read_cases
from fed_mwu.quantile_loss import QuantileSearch, loss_and_gradient

CASES = {case["id"]: case for case in read_cases("quantile_cases.json") if case["kind"] == "quantile"}
VALUES = st.lists(st.integers(-4, 4).map(float) | st.floats(-1e300, 1e300), min_size=1, max_size=20)


def expand(data):
    return (
        np.repeat(*np.array([pair if isinstance(pair, list) else [pair, 1] for pair in decode(data)]).T.tolist())
        if (any(isinstance(pair, list) for pair in data))
        else np.array(decode(data), dtype=float)
    )


def search(values, p):
    found, rounds, ordered = QuantileSearch(p), 0, np.sort(values)
    while not found.done:
        answer = loss_and_gradient(ordered, found.candidates()[np.newaxis], np.array([p]))
        found.narrow(answer.upper[0], ordered.size)
        rounds += 1
    return found.answer, rounds


@given(VALUES, st.floats(0, 1), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=4))
def test_loss_and_gradient_are_their_definition(values, p, q):
    values = np.clip(np.sort(values), -1e3, 1e3)
    found = loss_and_gradient(values, np.array([q]), np.array([p]))
    difference = values[:, np.newaxis] - np.array(q)
    assert found.loss[0] == pytest.approx((difference * (p - (difference < 0))).sum(axis=0), rel=1e-9, abs=1e-9)
    assert found.lower[0] == pytest.approx((difference < 0).sum(axis=0) - p * values.size)
    assert found.upper[0] == pytest.approx((difference <= 0).sum(axis=0) - p * values.size)


@given(VALUES, st.sampled_from([0, 0.02, 0.1, 0.25, 0.5, 0.7, 0.98, 1]))
def test_the_search_ends_at_numpys_inverted_cdf(values, p):
    found, rounds = search(np.array(values), p)
    assert rounds <= 11
    expected = np.quantile(values, p, method="inverted_cdf")
    # Where p n is whole up to rounding, any point up to the next value minimizes the loss.
    assert found == expected or np.sum(np.array(values) <= found) == round(p * len(values))


@pytest.mark.parametrize("name", CASES)
def test_public_cases(name):
    case = CASES[name]
    data = case["data"] if "data" in case else [v for site in case["sites"].values() for v in site]
    values = expand(data)
    for expected in case["expected"]["quantiles"]:
        low, high = expected["pinball_minimizers"]
        found, _ = search(values, expected["q"])
        assert low <= found <= high
        assert found == pytest.approx(expected["inverted_cdf"], rel=1e-15) or low < high


@pytest.mark.parametrize("factor", [4.0, 1e-3])
def test_rescaling_rescales(rng, factor):
    values = rng.normal(size=101)
    for p in (0.1, 0.5, 0.9):
        assert search(factor * values, p)[0] == factor * search(values, p)[0]
