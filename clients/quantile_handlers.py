"""What a center answers about quantiles beyond its table: sums for the Yeo-Johnson fit; the loss, if allowed."""

import numpy as np
from numpy.typing import NDArray

from fed_mwu.errors import Decline
from fed_mwu.quantile_exchange import LossQuestion, LossReply, TransformQuestion, TransformReply
from fed_mwu.quantile_loss import LossAnswer, loss_and_gradient
from fed_mwu.yeo_johnson_sums import TransformSums, transform_sums

from .handlers import Column, Refused, for_each
from .source import Source

__all__ = ["loss", "transform"]


def transform(source: Source, asked: TransformQuestion) -> TransformReply:
    """Tell sums of the transformed values, for each asked lambda.

    As many numbers as values would be equations for the values; and at an extreme lambda the sums tell about the few
    that have the rarer sign. Both are refused.
    """

    def answer(variable: str, column: Column) -> tuple[TransformSums, ...]:
        lams = asked.lams[variable]
        for group, values in enumerate(column.groups):
            negative = int(np.searchsorted(values, 0.0))
            if values.size and not (np.isfinite(values[0]) and np.isfinite(values[-1])):
                raise Refused("not-finite", group)
            if any(0 < few < asked.question.k for few in (negative, values.size - negative)):
                raise Refused("few-of-a-sign", group)
            if 0 < values.size <= 2 * lams.shape[1] + 3:
                raise Refused("too-many-numbers", group)
        return tuple(transform_sums(values, row) for values, row in zip(column.groups, lams, strict=True))

    sums, refusals = for_each(source, asked.question, answer)
    return TransformReply(source.name, sums, refusals)


def loss(source: Source, asked: LossQuestion) -> LossReply:
    """Tell the quantile loss and its sub-gradient at the asked values, if the center's own configuration allows it.

    Raises
    ------
    Decline
        "loss-not-allowed".
    """
    if not source.allow_quantile_loss:
        raise Decline("loss-not-allowed", "set allow-quantile-loss in the node's configuration to allow it")

    def answer(variable: str, column: Column) -> tuple[tuple[int, ...], tuple[LossAnswer, ...]]:
        if any(values.size and not np.isfinite(values[[0, -1]]).all() for values in column.groups):
            raise Refused("not-finite")
        return column.sizes, tuple(_losses(column.groups, asked.candidates[variable], asked.probabilities))

    answers, refusals = for_each(source, asked.question, answer)
    sizes = {variable: found for variable, (found, _) in answers.items()}
    return LossReply(source.name, sizes, {variable: found for variable, (_, found) in answers.items()}, refusals)


def _losses(
    groups: list[NDArray[np.float64]], candidates: NDArray[np.float64], probabilities: NDArray[np.float64]
) -> list[LossAnswer]:
    return [loss_and_gradient(values, q, probabilities) for values, q in zip(groups, candidates, strict=True)]
