"""Speed against a peer in the same run: pytest benchmarks --benchmark-columns=min,median,rounds.

Each group of benchmarks holds the work and its floor or rival. The number in brackets, the ratio to the fastest of the
group, is what counts, not the machine's seconds.
"""

import numpy as np
import pytest
from scipy import stats

from fed_mwu import bin_center, center_statistic, fit_yeo_johnson
from fed_mwu.simulations import Federation
from fed_mwu.strategies import SequentialTable, WeightedMWU
from fed_mwu.yeo_johnson_table import fit_table

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def million():
    return RNG.normal(size=1_000_000), RNG.normal(size=1_000_000)


@pytest.fixture(scope="module")
def ten_million():
    return RNG.normal(size=5_000_000), RNG.normal(size=5_000_000)


def sort_both(x, y):
    np.sort(x)
    np.sort(y)


@pytest.mark.benchmark(group="statistic of 1,000,000 + 1,000,000")
class TestStatistic:
    def test_floor_sorting(self, benchmark, million):
        benchmark(sort_both, *million)

    def test_center_statistic(self, benchmark, million):
        benchmark(center_statistic, *million)

    def test_scipy(self, benchmark, million):
        benchmark(stats.mannwhitneyu, *million, method="asymptotic")


@pytest.mark.benchmark(group="binning 10,000,000, at most 1,000 bins")
class TestBinning:
    def test_floor_sorting(self, benchmark, ten_million):
        benchmark(sort_both, *ten_million)

    def test_bin_center(self, benchmark, ten_million):
        benchmark(bin_center, ten_million, k=10, max_bins=1000)


@pytest.mark.benchmark(group="binning 1,000,000, K = 10, no cap")
class TestFineBinning:
    def test_floor_sorting(self, benchmark, million):
        benchmark(sort_both, million[0][:500_000], million[1][:500_000])

    def test_bin_center(self, benchmark, million):
        benchmark(bin_center, [million[0][:500_000], million[1][:500_000]], k=10, max_bins=0)


@pytest.mark.benchmark(group="Yeo-Johnson fit of 1,000,000")
class TestYeoJohnson:
    def test_fit_yeo_johnson(self, benchmark, million):
        benchmark(fit_yeo_johnson, np.exp(million[0] / 3))

    def test_scipy(self, benchmark, million):
        benchmark(stats.yeojohnson, np.exp(million[0] / 3))


@pytest.mark.benchmark(group="grouped fit of a table of 60 bins")
def test_fit_table(benchmark):
    table = bin_center([RNG.gamma(4, size=1500)], k=25)
    assert 55 <= table.n_bins <= 65
    benchmark(fit_table, [table])


@pytest.fixture(scope="module")
def ten_centers():
    centers = {f"center {i}": {"x": RNG.normal(size=150), "y": RNG.normal(0.1, size=150)} for i in range(10)}
    return Federation(centers, k=10)


@pytest.fixture(scope="module")
def thousand_variables():
    centers = {
        f"center {i}": {f"v{j}": {"x": RNG.normal(size=75), "y": RNG.normal(size=75)} for j in range(1000)}
        for i in range(10)
    }
    return Federation(centers, k=10)


@pytest.mark.benchmark(group="federation of 10 centers of 300 values")
@pytest.mark.parametrize("strategy", [SequentialTable, WeightedMWU])
def test_federation(benchmark, ten_centers, strategy):
    benchmark(lambda: ten_centers.run(strategy()))


@pytest.mark.benchmark(group="1,000 variables of 1,500 values at 10 centers")
@pytest.mark.parametrize("strategy", [SequentialTable, WeightedMWU])
def test_many_variables(benchmark, thousand_variables, strategy):
    benchmark.pedantic(lambda: thousand_variables.run(strategy()), rounds=1)
