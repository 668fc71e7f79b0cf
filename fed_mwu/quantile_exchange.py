"""What the server and the centers say to each other for quantiles, as plain dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fed_mwu.exchange import Question, Refusal
from fed_mwu.quantile_loss import LossAnswer
from fed_mwu.yeo_johnson_sums import TransformSums

__all__ = ["LossQuestion", "LossReply", "TransformQuestion", "TransformReply"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TransformQuestion:
    """A question with the lambdas to transform with: by variable an array of shape (G, Q)."""

    question: Question
    lams: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class TransformReply:
    """Sums of each group by variable, refusals for the others."""

    center: str
    sums: Mapping[str, tuple[TransformSums, ...]]
    refusals: Mapping[str, Refusal]


@dataclass(frozen=True, slots=True)
class LossQuestion:
    """A question with probabilities, shape (P,), and by variable the q to evaluate the loss at, shape (G, P, M)."""

    question: Question
    probabilities: Floats
    candidates: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class LossReply:
    """Sizes and losses of each group by variable, refusals for the others."""

    center: str
    sizes: Mapping[str, tuple[int, ...]]
    losses: Mapping[str, tuple[LossAnswer, ...]]
    refusals: Mapping[str, Refusal]
