"""The server's side: Flower strategies that ask, check and combine."""

from .base import FederatedStrategy
from .center_tests import FisherMWU, SumMWU, WeightedMWU
from .quantiles import QuantileLoss, YeoJohnson
from .results import StrategyResult
from .tables import SequentialTable

__all__ = [
    "FederatedStrategy",
    "FisherMWU",
    "QuantileLoss",
    "SequentialTable",
    "StrategyResult",
    "SumMWU",
    "WeightedMWU",
    "YeoJohnson",
]
