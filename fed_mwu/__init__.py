"""Federated nonparametric statistics: Mann-Whitney tests and quantiles over hospitals that keep their data.

See README.md for the ideas and `fed_mwu.strategies`, `fed_mwu.simulations` for running them on Flower.
"""

from fed_mwu.binning import bin_center
from fed_mwu.joining import join_center
from fed_mwu.limits import Ends
from fed_mwu.quantiles import table_quantiles
from fed_mwu.rank_tests import combined_test, fisher_test, sum_test, table_test, weighted_test
from fed_mwu.ranks import CenterStatistic, center_statistic
from fed_mwu.results import RankTestResult
from fed_mwu.table import Table
from fed_mwu.yeo_johnson import fit_yeo_johnson, inverse_yeo_johnson, yeo_johnson

__all__ = [
    "CenterStatistic",
    "Ends",
    "RankTestResult",
    "Table",
    "bin_center",
    "center_statistic",
    "combined_test",
    "fisher_test",
    "fit_yeo_johnson",
    "inverse_yeo_johnson",
    "join_center",
    "sum_test",
    "table_quantiles",
    "table_test",
    "weighted_test",
    "yeo_johnson",
]

__version__ = "0.1.0"
