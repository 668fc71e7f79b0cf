"""Questions and answers <-> Flower records; only the modules named messages import flwr here.

The wire, protocol 1. A question is a ``ConfigRecord`` named "question"; a table question has an ``ArrayRecord``
"tables" too. An answer is a ``ConfigRecord`` "answer" (protocol, center, and "declined" if nothing is answered) and
an ``ArrayRecord`` "values" with one entry per variable, in the order of the question. Numbers are float64, sizes and
codes int64. Tables are ragged: "offsets" cuts "limits" into variables, an empty piece is no table; "counts" holds G
times (limits - 1) numbers for each. Everything is checked when it is read: unknown shapes, types or codes raise
`InvalidReply`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from fed_mwu.errors import Decline, InvalidReply
from fed_mwu.exchange import (
    Counts,
    Description,
    Question,
    StatisticAnswer,
    TableAnswer,
    TableQuestion,
)
from fed_mwu.limits import Ends
from fed_mwu.ragged import pack_tables, unpack_tables
from fed_mwu.ranks import CenterStatistic
from fed_mwu.record_messages import PROTOCOL, array_of, arrays_of, encode_answer, read_answer
from fed_mwu.table import Table

__all__ = [
    "decode_description",
    "decode_question",
    "decode_statistic_answer",
    "decode_table_answer",
    "decode_table_question",
    "decode_tables",
    "encode_description",
    "encode_question",
    "encode_statistic_answer",
    "encode_table_answer",
    "encode_table_question",
    "encode_tables",
]

_QUESTION_KEYS = {"protocol", "variables", "group", "groups", "k", "ends", "low", "high", "max-bins"}


# --- questions -------------------------------------------------------------------------------------------------------


def encode_question(question: Question) -> RecordDict:
    """Put a question into records."""
    record = ConfigRecord(
        {
            "protocol": PROTOCOL,
            "variables": list(question.variables),
            "group": question.group,
            "groups": list(question.groups),
            "k": question.k,
            "ends": question.ends.name,
            "low": question.ends.low,
            "high": question.ends.high,
            "max-bins": question.max_bins,
        }
    )
    return RecordDict({"question": record})


def decode_question(content: RecordDict) -> Question:
    """Read a question at a center.

    Raises
    ------
    Decline
        "wrong-version" or "bad-request".
    """
    record = content.config_records.get("question")
    if record is None:
        raise Decline("bad-request", "there is no question in this message")
    if record.get("protocol") != PROTOCOL:
        raise Decline("wrong-version", f"this center speaks protocol {PROTOCOL}")
    if set(record) != _QUESTION_KEYS:
        raise Decline("bad-request", f"a question has the keys {sorted(_QUESTION_KEYS)}")
    fields = cast(dict[str, Any], dict(record))
    if not (isinstance(fields["variables"], list) and isinstance(fields["groups"], list)):
        raise Decline("bad-request", "variables and groups are lists")
    try:
        return Question(
            variables=tuple(fields["variables"]),
            group=fields["group"],
            groups=tuple(fields["groups"]),
            k=fields["k"],
            ends=Ends(fields["ends"], fields["low"], fields["high"]),
            max_bins=fields["max-bins"],
        )
    except (TypeError, ValueError) as error:
        raise Decline("bad-request", str(error)) from None


def encode_table_question(asked: TableQuestion) -> RecordDict:
    """Put a question and the tables so far into records."""
    content = encode_question(asked.question)
    content["tables"] = encode_tables(asked.question.variables, asked.tables)
    return content


def decode_table_question(content: RecordDict) -> TableQuestion:
    """Read a question and the tables that it brings along, at a center.

    Raises
    ------
    Decline
        "wrong-version" or "bad-request".
    """
    question = decode_question(content)
    record = content.array_records.get("tables")
    if record is None:
        raise Decline("bad-request", "there are no tables in this message")
    try:
        return TableQuestion(question, decode_tables(record, question.variables, len(question.groups)))
    except InvalidReply as error:
        raise Decline("bad-request", str(error)) from None


# --- tables ----------------------------------------------------------------------------------------------------------


def encode_tables(variables: Sequence[str], tables: Mapping[str, Table]) -> ArrayRecord:
    """Put the tables of some of the variables into one ragged record."""
    return arrays_of(**pack_tables(variables, tables))


def decode_tables(record: ArrayRecord, variables: Sequence[str], n_groups: int) -> dict[str, Table]:
    """Read tables; the variables that have none are left out.

    Raises
    ------
    InvalidReply
        If shapes, types or values are not those of tables.
    """
    offsets = array_of(record, "offsets", np.int64, len(variables) + 1)
    limits = array_of(record, "limits", np.float64, None)
    counts = array_of(record, "counts", np.float64, None)
    return unpack_tables(offsets, limits, counts, variables, n_groups)


# --- answers ---------------------------------------------------------------------------------------------------------


def encode_description(answer: Description, question: Question) -> RecordDict:
    """Put the sizes of a center into records."""
    none = Counts((0,) * len(question.groups), (0,) * len(question.groups))
    counts = [answer.counts.get(variable, none) for variable in question.variables]
    return encode_answer(
        answer.center,
        question,
        answer.refusals,
        sizes=np.array([c.sizes for c in counts], dtype=np.int64),
        missing=np.array([c.missing for c in counts], dtype=np.int64),
    )


def decode_description(content: RecordDict, question: Question) -> Description:
    """Read the sizes of a center at the server; raises `Decline` or `InvalidReply`."""
    center, values, refusals = read_answer(content, question)
    shape = (len(question.variables), len(question.groups))
    sizes = array_of(values, "sizes", np.int64, shape).tolist()
    missing = array_of(values, "missing", np.int64, shape).tolist()
    counts = {
        variable: Counts(tuple(n), tuple(m))
        for variable, n, m in zip(question.variables, sizes, missing, strict=True)
        if variable not in refusals
    }
    return Description(center, counts, refusals)


def encode_table_answer(answer: TableAnswer, question: Question) -> RecordDict:
    """Put joined tables into records."""
    content = encode_answer(answer.center, question, answer.refusals)
    content["tables"] = encode_tables(question.variables, answer.tables)
    return content


def decode_table_answer(content: RecordDict, question: Question) -> TableAnswer:
    """Read joined tables at the server; raises `Decline` or `InvalidReply`."""
    center, _, refusals = read_answer(content, question)
    record = content.array_records.get("tables")
    if record is None:
        raise InvalidReply("there are no tables in this answer")
    tables = decode_tables(record, question.variables, len(question.groups))
    if set(tables) | set(refusals) != set(question.variables) or set(tables) & set(refusals):
        raise InvalidReply("each variable must come with either a table or a refusal")
    return TableAnswer(center, tables, refusals)


def encode_statistic_answer(answer: StatisticAnswer, question: Question) -> RecordDict:
    """Put the statistics of a center into records."""
    none = CenterStatistic(0.0, 0.0, 0.0, 0.0)
    statistics = [answer.statistics.get(variable, none) for variable in question.variables]
    missing = [answer.missing.get(variable, (0,) * len(question.groups)) for variable in question.variables]
    return encode_answer(
        answer.center,
        question,
        answer.refusals,
        statistics=np.array([[c.n, c.m, c.u, c.variance] for c in statistics], dtype=np.float64),
        missing=np.array(missing, dtype=np.int64),
    )


def decode_statistic_answer(content: RecordDict, question: Question) -> StatisticAnswer:
    """Read the statistics of a center at the server; raises `Decline` or `InvalidReply`."""
    center, values, refusals = read_answer(content, question)
    rows = array_of(values, "statistics", np.float64, (len(question.variables), 4)).tolist()
    missing = array_of(values, "missing", np.int64, (len(question.variables), len(question.groups))).tolist()
    statistics = {}
    for variable, row in zip(question.variables, rows, strict=True):
        if variable not in refusals:
            try:
                statistics[variable] = CenterStatistic(*row)
            except ValueError as error:
                raise InvalidReply(f"a statistic contradicts itself: {error}") from None
    kept = {v: tuple(m) for v, m in zip(question.variables, missing, strict=True) if v in statistics}
    return StatisticAnswer(center, statistics, kept, refusals)
