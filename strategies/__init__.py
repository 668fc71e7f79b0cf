"""The server's side: Flower strategies that ask, check and combine."""

from .base import FederatedStrategy, StrategyResult
from .center_tests import FisherMWU, SumMWU, WeightedMWU
from .tables import SequentialTable

__all__ = ["FederatedStrategy", "FisherMWU", "SequentialTable", "StrategyResult", "SumMWU", "WeightedMWU"]
