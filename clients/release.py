"""The one door: every answer passes here on its way out, and is checked from what it says alone.

The handlers should never offer anything that fails here. The door does not trust them: a mistake in the binning, or
in a handler that somebody adds, must not become a release. Its checks share no code with what made the answer.
"""

from collections.abc import Iterable, Mapping

from flwr.app import RecordDict

from fed_mwu.errors import NotPrivate
from fed_mwu.exchange import WITHHELD, Description, Question, StatisticAnswer, TableAnswer, TableQuestion
from fed_mwu.messages import encode_description, encode_statistic_answer, encode_table_answer
from fed_mwu.quantile_exchange import LossQuestion, LossReply, TransformQuestion, TransformReply
from fed_mwu.quantile_messages import encode_loss_reply, encode_transform_reply
from fed_mwu.table import Table, are_private
from fed_mwu.transit import check_joined

__all__ = [
    "release_description",
    "release_losses",
    "release_statistics",
    "release_sums",
    "release_tables",
]


def release_description(answer: Description, question: Question) -> RecordDict:
    """Let sizes out: each is 0 or at least k, and so is each count of missing values, unless it is withheld.

    Raises
    ------
    NotPrivate
    """
    for counts in answer.counts.values():
        _check_numbers(counts.sizes, question.k)
        _check_missing(counts.missing, question.k)
    return encode_description(answer, question)


def release_statistics(answer: StatisticAnswer, question: Question) -> RecordDict:
    """Let rank statistics out: both groups hold at least k values.

    Raises
    ------
    NotPrivate
    """
    for variable, found in answer.statistics.items():
        if min(found.n, found.m) < question.k:
            raise NotPrivate("a statistic of fewer than k values was kept back")
        _check_missing(answer.missing[variable], question.k)
    return encode_statistic_answer(answer, question)


def release_tables(answer: TableAnswer, contributions: Mapping[str, Table], asked: TableQuestion) -> RecordDict:
    """Let tables out: the center's own counts are private, and the table holds them and the old counts, nothing else.

    Parameters
    ----------
    answer : TableAnswer
    contributions : mapping of str to Table
        The center's own counts over united bins, for each table.
    asked : TableQuestion

    Raises
    ------
    NotPrivate
    """
    k = asked.question.k
    for variable, table in answer.tables.items():
        own = contributions[variable]
        _check_numbers(own.counts.ravel().tolist(), k)
        before = asked.tables.get(variable)
        if before is None:
            if table != own:
                raise NotPrivate("a first table that is not the center's own was kept back")
        else:
            check_joined(before, table, own.sizes.tolist())
        if (before is None or before.is_private(k)) and not table.is_private(k):
            raise NotPrivate("a table with a count between 0 and k was kept back")
    return encode_table_answer(answer, asked.question)


def release_sums(reply: TransformReply, asked: TransformQuestion) -> RecordDict:
    """Let sums out: each group holds none or at least k values, and more values than numbers leave.

    Raises
    ------
    NotPrivate
    """
    for sums in reply.sums.values():
        for part in sums:
            _check_numbers([part.n], asked.question.k)
            if 0 < part.n <= 2 * part.means.size + 3:
                raise NotPrivate("as many sums as values were kept back")
    return encode_transform_reply(reply, asked)


def release_losses(reply: LossReply, asked: LossQuestion, *, allowed: bool) -> RecordDict:
    """Let losses out, which give single values away: only where the center's own configuration allows it.

    Raises
    ------
    NotPrivate
    """
    if not allowed:
        raise NotPrivate("a quantile loss was kept back")
    for sizes in reply.sizes.values():
        _check_numbers(sizes, asked.question.k)
    return encode_loss_reply(reply, asked)


def _check_numbers(numbers: Iterable[float], k: int) -> None:
    if not are_private(list(numbers), k).all():
        raise NotPrivate("a count between 0 and k was kept back")


def _check_missing(missing: Iterable[int], k: int) -> None:
    _check_numbers((n for n in missing if n != WITHHELD), k)
