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
            _check_finite(values, group)
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
        for group, values in enumerate(column.groups):
            _check_finite(values, group)
        found = [
            loss_and_gradient(values, q, asked.probabilities)
            for values, q in zip(column.groups, asked.candidates[variable], strict=True)
        ]
        return column.sizes, tuple(found)

    answers, refusals = for_each(source, asked.question, answer)
    sizes = {variable: found for variable, (found, _) in answers.items()}
    return LossReply(source.name, sizes, {variable: found for variable, (_, found) in answers.items()}, refusals)


def _check_finite(values: NDArray[np.float64], group: int) -> None:
    """Refuse a group, sorted, with infinite values."""
    if values.size and not np.isfinite(values[[0, -1]]).all():
        raise Refused("not-finite", group)
