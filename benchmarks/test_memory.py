"""Peak memory beside the input, as numpy reports it to tracemalloc: pytest benchmarks/test_memory.py -s."""

import tracemalloc

import numpy as np
import pytest

from fed_mwu import bin_center, center_statistic


def peak(work, *inputs):
    """Return input plus peak of what `work` takes, in units of the input."""
    size = sum(array.nbytes for array in inputs)
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return 1 + most / size


@pytest.mark.parametrize("max_bins", [1000, 0])
def test_binning_ten_million_values(max_bins):
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=5_000_000), rng.normal(size=5_000_000)
    found = peak(lambda: bin_center([x, y], k=10, max_bins=max_bins), x, y)
    print(f"\nbin_center, max_bins={max_bins}: {found:.2f} x input")


def test_statistic_of_two_million_values():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=1_000_000), rng.normal(size=1_000_000)
    print(f"\ncenter_statistic: {peak(lambda: center_statistic(x, y), x, y):.2f} x input")
