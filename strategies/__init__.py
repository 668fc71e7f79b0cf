"""The server's side: Flower strategies that ask, check and combine."""

from .base import FederatedStrategy
from .center_tests import FisherMWU, SumMWU, WeightedMWU
from .results import StrategyResult
from .tables import SequentialTable

__all__ = ["FederatedStrategy", "FisherMWU", "SequentialTable", "StrategyResult", "SumMWU", "WeightedMWU"]
