"""Quantile questions and answers <-> Flower records: like all modules here that are named messages it imports flwr.

A question's numbers are an ``ArrayRecord`` "asked": "lams" of shape (V, G, Q), or "probabilities" (P,) and
"candidates" of shape (V, G, P, M). An answer's are in "values", in the order of the question's variables, zeros where
a variable is refused.
"""

from typing import Any

import numpy as np
from flwr.app import RecordDict
from numpy.typing import NDArray

from fed_mwu.errors import Decline, InvalidReply
from fed_mwu.messages import decode_question, encode_question
from fed_mwu.quantile_exchange import LossQuestion, LossReply, TransformQuestion, TransformReply
from fed_mwu.quantile_loss import LossAnswer
from fed_mwu.record_messages import array_of, arrays_of, encode_answer, read_answer
from fed_mwu.yeo_johnson_sums import TransformSums

__all__ = [
    "decode_loss_question",
    "decode_loss_reply",
    "decode_transform_question",
    "decode_transform_reply",
    "encode_loss_question",
    "encode_loss_reply",
    "encode_transform_question",
    "encode_transform_reply",
]

MOST_LAMBDAS = 40
MOST_CANDIDATES = 1000
_SUMS = 3  # n, log_sum, log_squares


def encode_transform_question(asked: TransformQuestion) -> RecordDict:
    """Put a question and its lambdas into records."""
    content = encode_question(asked.question)
    content["asked"] = arrays_of(lams=np.stack([asked.lams[v] for v in asked.question.variables]))
    return content


def decode_transform_question(content: RecordDict) -> TransformQuestion:
    """Read a question and its lambdas at a center; raises `Decline`."""
    question = decode_question(content)
    lams = _asked(content, "lams", (len(question.variables), len(question.groups), None))
    if not np.isfinite(lams).all() or not 0 < lams.shape[2] <= MOST_LAMBDAS:
        raise Decline("bad-request", f"lambdas are 1 to {MOST_LAMBDAS} finite numbers")
    return TransformQuestion(question, dict(zip(question.variables, lams, strict=True)))


def encode_transform_reply(reply: TransformReply, asked: TransformQuestion) -> RecordDict:
    """Put a center's sums into records."""
    question = asked.question
    n_lams = next(iter(asked.lams.values())).shape[1]
    values = np.zeros((len(question.variables), len(question.groups), _SUMS + 2 * n_lams))
    for row, variable in zip(values, question.variables, strict=True):
        for cells, sums in zip(row, reply.sums.get(variable, ()), strict=variable in reply.sums):
            cells[:] = np.concatenate(([sums.n, sums.log_sum, sums.log_squares], sums.means, sums.squares))
    return encode_answer(reply.center, question, reply.refusals, sums=values)


def decode_transform_reply(content: RecordDict, asked: TransformQuestion) -> TransformReply:
    """Read a center's sums at the server; raises `Decline` or `InvalidReply`."""
    question = asked.question
    center, values, refusals = read_answer(content, question)
    n_lams = next(iter(asked.lams.values())).shape[1]
    shape = (len(question.variables), len(question.groups), _SUMS + 2 * n_lams)
    sums = {}
    for variable, row in zip(question.variables, array_of(values, "sums", np.float64, shape), strict=True):
        if variable not in refusals:
            found = [TransformSums(*cells[:_SUMS].tolist(), *np.split(cells[_SUMS:], 2)) for cells in row]
            if any(not _plausible(part) for part in found):
                raise InvalidReply("a sum contradicts itself")
            sums[variable] = tuple(found)
    return TransformReply(center, sums, refusals)


def _plausible(part: TransformSums) -> bool:
    """Tell whether sums can be those of real data; what has overflowed may be anything."""
    finite = np.isfinite(part.squares)
    return bool(part.n >= 0 and part.n.is_integer() and part.log_squares >= 0 and (part.squares[finite] >= 0).all())


def encode_loss_question(asked: LossQuestion) -> RecordDict:
    """Put a question, its probabilities and candidates into records."""
    content = encode_question(asked.question)
    candidates = np.stack([asked.candidates[v] for v in asked.question.variables])
    content["asked"] = arrays_of(probabilities=asked.probabilities, candidates=candidates)
    return content


def decode_loss_question(content: RecordDict) -> LossQuestion:
    """Read a question, its probabilities and candidates at a center; raises `Decline`."""
    question = decode_question(content)
    probabilities = _asked(content, "probabilities", (None,))
    shape = (len(question.variables), len(question.groups), probabilities.size, None)
    candidates = _asked(content, "candidates", shape)
    inside = ((probabilities >= 0.0) & (probabilities <= 1.0)).all()
    if not inside or np.isnan(candidates).any() or not 0 < candidates.shape[3] <= MOST_CANDIDATES:
        raise Decline("bad-request", "probabilities are between 0 and 1, candidates are numbers")
    return LossQuestion(question, probabilities, dict(zip(question.variables, candidates, strict=True)))


def encode_loss_reply(reply: LossReply, asked: LossQuestion) -> RecordDict:
    """Put a center's losses into records."""
    question = asked.question
    cells = next(iter(asked.candidates.values())).shape
    sizes = np.array([reply.sizes.get(v, (0,) * cells[0]) for v in question.variables], dtype=np.int64)
    values = np.zeros((len(question.variables), cells[0], 3, *cells[1:]))
    for row, variable in zip(values, question.variables, strict=True):
        for group, found in zip(row, reply.losses.get(variable, ()), strict=variable in reply.losses):
            group[0], group[1], group[2] = found.loss, found.lower, found.upper
    return encode_answer(reply.center, question, reply.refusals, sizes=sizes, losses=values)


def decode_loss_reply(content: RecordDict, asked: LossQuestion) -> LossReply:
    """Read a center's losses at the server; raises `Decline` or `InvalidReply`."""
    question = asked.question
    center, values, refusals = read_answer(content, question)
    cells = next(iter(asked.candidates.values())).shape
    sizes = array_of(values, "sizes", np.int64, (len(question.variables), cells[0]))
    losses = array_of(values, "losses", np.float64, (len(question.variables), cells[0], 3, *cells[1:]))
    if (sizes < 0).any() or np.isnan(losses[:, :, 1:]).any():
        raise InvalidReply("a size is negative or a sub-gradient is no number")
    answered = [v for v in question.variables if v not in refusals]
    at = {variable: i for i, variable in enumerate(question.variables)}
    return LossReply(
        center,
        {v: tuple(sizes[at[v]].tolist()) for v in answered},
        {v: tuple(LossAnswer(*group) for group in losses[at[v]]) for v in answered},
        refusals,
    )


def _asked(content: RecordDict, name: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    record = content.array_records.get("asked")
    if record is None:
        raise Decline("bad-request", "there are no numbers in this message")
    try:
        return array_of(record, name, np.float64, shape)
    except InvalidReply as error:
        raise Decline("bad-request", str(error)) from None
