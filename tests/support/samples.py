"""Samples for the property tests: heavy ties, tiny groups, extreme values."""

import math

import numpy as np
from hypothesis import strategies as st

VALUE = st.one_of(
    st.integers(-6, 6).map(float),
    st.sampled_from([0.1, 0.1 + 2**-55, 1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0), -0.0, 5e-324, 1e9]),
    st.floats(-1e300, 1e300),
)


@st.composite
def centers(draw, n_groups, k, values=VALUE, largest=40):
    """Draw the values of a center's groups: each is empty or has at least k, and one has some."""
    groups = []
    for _ in range(n_groups):
        size = draw(st.one_of(st.just(0), st.integers(k, max(k, largest))))
        groups.append(np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype=np.float64))
    if not any(group.size for group in groups):
        groups[0] = np.array(draw(st.lists(values, min_size=k, max_size=max(k, largest))), dtype=np.float64)
    return groups


@st.composite
def federations(draw, values=VALUE, most_centers=4):
    """Draw k and the centers of a federation that share the number of groups."""
    k = draw(st.integers(1, 6))
    n_groups = draw(st.integers(1, 3))
    number = draw(st.integers(1, most_centers))
    return k, [draw(centers(n_groups, k, values)) for _ in range(number)]
