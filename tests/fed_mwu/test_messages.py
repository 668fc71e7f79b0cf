"""What travels, and what becomes of it when it has been tampered with."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from hypothesis import given
from hypothesis import strategies as st

from fed_mwu import Ends, Table, center_statistic
from fed_mwu.errors import Decline, InvalidReply
from fed_mwu.exchange import (
    DECLINES,
    Counts,
    Description,
    Question,
    Refusal,
    StatisticAnswer,
    TableAnswer,
    TableQuestion,
    explain,
)
from fed_mwu.messages import (
    decode_description,
    decode_question,
    decode_statistic_answer,
    decode_table_answer,
    decode_table_question,
    encode_description,
    encode_question,
    encode_statistic_answer,
    encode_table_answer,
    encode_table_question,
)
from fed_mwu.record_messages import encode_decline, size_in_bytes

QUESTION = Question(("a", "b", "c"), "g", ("no", "yes"), k=5, ends=Ends.natural(0, np.inf), max_bins=7)
TABLES = {
    "a": Table([-np.inf, 0.1, 5e-324 + 1, np.inf], [[1 / 3, 2, 3], [4, 5, 6]]),
    "c": Table([0, 1e308], [[7], [8]]),
}
REFUSALS = {"b": Refusal("below-k", 1)}


def travel(content):
    """Send records as Flower does: through protobuf."""
    return recorddict_from_proto(recorddict_to_proto(content))


def test_a_question_arrives_as_it_was():
    assert decode_question(travel(encode_question(QUESTION))) == QUESTION


def test_tables_arrive_bit_for_bit():
    asked = decode_table_question(travel(encode_table_question(TableQuestion(QUESTION, TABLES))))
    assert asked == TableQuestion(QUESTION, TABLES)
    answer = TableAnswer("A", TABLES, REFUSALS)
    assert decode_table_answer(travel(encode_table_answer(answer, QUESTION)), QUESTION) == answer


def test_no_table_yet_is_none():
    asked = decode_table_question(travel(encode_table_question(TableQuestion(QUESTION, {}))))
    assert asked.tables == {}


def test_sizes_and_statistics_arrive_as_they_were():
    description = Description("A", {"a": Counts((10, 0), (-1, 12)), "c": Counts((9, 9), (0, 0))}, REFUSALS)
    assert decode_description(travel(encode_description(description, QUESTION)), QUESTION) == description
    found = center_statistic(range(9), range(3, 12))
    statistics = StatisticAnswer("A", {"a": found, "c": found}, {"a": (-1, 0), "c": (0, 0)}, REFUSALS)
    assert decode_statistic_answer(travel(encode_statistic_answer(statistics, QUESTION)), QUESTION) == statistics


@pytest.mark.parametrize("code", DECLINES)
def test_a_refused_message_raises_its_code(code):
    with pytest.raises(Decline) as caught:
        decode_description(travel(encode_decline("A", code)), QUESTION)
    assert caught.value.code == code


def test_refusals_are_explained_in_the_questions_own_words():
    assert explain(Refusal("below-k", 1), QUESTION) == 'group "yes" has fewer than 5 values'
    assert explain(Refusal("below-k", 7), QUESTION) == 'group "?" has fewer than 5 values'
    with pytest.raises(ValueError, match="code must be one of"):
        Refusal("because")


def test_the_size_grows_with_the_variables_not_the_messages():
    one = size_in_bytes(encode_table_question(TableQuestion(QUESTION.about(["a"]), {"a": TABLES["a"]})))
    many = Question(tuple(f"v{i}" for i in range(1000)), "g", ("no", "yes"))
    thousand = size_in_bytes(encode_table_question(TableQuestion(many, dict.fromkeys(many.variables, TABLES["a"]))))
    assert thousand < 1000 * 150 + one


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"protocol": 2}, "wrong-version"),
        ({"protocol": None}, "wrong-version"),
        ({"k": 0}, "bad-request"),
        ({"k": "10"}, "bad-request"),
        ({"k": None}, "bad-request"),
        ({"variables": ["a", "a"]}, "bad-request"),
        ({"variables": [""]}, "bad-request"),
        ({"variables": ["x" * 1000]}, "bad-request"),
        ({"variables": [1, 2]}, "bad-request"),
        ({"variables": 5}, "bad-request"),
        ({"groups": "no"}, "bad-request"),
        ({"ends": "shut"}, "bad-request"),
        ({"low": 5.0, "high": 1.0}, "bad-request"),
        ({"low": "x"}, "bad-request"),
        ({"max-bins": -1}, "bad-request"),
        ({"extra": 1}, "bad-request"),
    ],
)
def test_a_bad_question_is_a_typed_decline(change, code):
    content = encode_question(QUESTION)
    record = content["question"]
    for key, value in change.items():
        if value is None:
            del record[key]
        else:
            record[key] = value
    with pytest.raises(Decline) as caught:
        decode_question(content)
    assert caught.value.code == code


def test_no_question_is_a_typed_decline():
    for content in (RecordDict(), RecordDict({"question": ArrayRecord()})):
        with pytest.raises(Decline, match="bad-request"):
            decode_question(content)
    with pytest.raises(Decline, match="no tables"):
        decode_table_question(encode_question(QUESTION))


HOSTILE = {
    "ten million bins": {
        "offsets": np.array([0, 10_000_001, 10_000_001, 10_000_001]),
        "limits": np.arange(10_000_001.0),
        "counts": np.zeros(20_000_000),
    },
    "NaN count": {"counts": np.full(8, np.nan)},
    "negative count": {"counts": np.array([-1.0, 1, 1, 1, 1, 1, 1, 1])},
    "infinite count": {"counts": np.array([np.inf, 1, 1, 1, 1, 1, 1, 1])},
    "huge count": {"counts": np.full(8, 1e300)},
    "missing counts": {"counts": np.ones(6)},
    "unsorted limits": {"limits": np.array([0.0, 2, 1, 3, 0, 1])},
    "NaN limit": {"limits": np.array([0.0, 1, np.nan, 3, 0, 1])},
    "doubled limit": {"limits": np.array([0.0, 1, 1, 3, 0, 1])},
    "single limit": {"offsets": np.array([0, 1, 1, 6])},
    "offsets that fall": {"offsets": np.array([0, 4, 2, 6])},
    "offsets that do not start at 0": {"offsets": np.array([1, 4, 4, 6])},
    "offsets that end early": {"offsets": np.array([0, 4, 4, 5])},
    "offsets of another type": {"offsets": np.array([0.0, 4, 4, 6])},
    "limits of another type": {"limits": np.array([0, 1, 2, 3, 0, 1])},
    "two-dimensional limits": {"limits": np.zeros((2, 3))},
    "too few offsets": {"offsets": np.array([0, 6])},
    "text": {"counts": np.array(["a"] * 8)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables_are_refused_on_both_sides(name):
    question = encode_table_question(TableQuestion(QUESTION, TABLES))
    answer = encode_table_answer(TableAnswer("A", TABLES, REFUSALS), QUESTION)
    for content in (question, answer):
        for key, array in HOSTILE[name].items():
            content["tables"][key] = Array(array)
    with pytest.raises(Decline) as caught:
        decode_table_question(question)
    assert caught.value.code == "bad-request"
    with pytest.raises(InvalidReply):
        decode_table_answer(answer, QUESTION)


def test_bytes_that_are_no_array_are_refused():
    answer = encode_table_answer(TableAnswer("A", TABLES, REFUSALS), QUESTION)
    for data in (b"", b"nonsense", b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"):
        answer["tables"]["counts"] = Array("float64", (8,), "numpy.ndarray", data)
        with pytest.raises(InvalidReply, match="cannot be read"):
            decode_table_answer(answer, QUESTION)


def nonsense(content, record, key, value):
    content[record][key] = value
    return content


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"answer": ConfigRecord({"protocol": 1})}),
        RecordDict({"answer": ConfigRecord({"protocol": 9, "center": "A"})}),
        RecordDict({"answer": ConfigRecord({"protocol": 1, "center": "A", "declined": "because 3 patients"})}),
        RecordDict({"answer": ConfigRecord({"protocol": 1, "center": "A", "declined": 5})}),
        RecordDict({"answer": ConfigRecord({"protocol": 1, "center": "A"})}),
        RecordDict({"answer": ConfigRecord({"protocol": 1, "center": "A"}), "values": ArrayRecord()}),
        nonsense(
            encode_statistic_answer(StatisticAnswer("A", {}, {}, {}), QUESTION),
            "values",
            "statistics",
            Array(-np.ones((3, 4))),
        ),
        nonsense(
            encode_statistic_answer(StatisticAnswer("A", {}, {}, {}), QUESTION),
            "values",
            "refused",
            Array(np.full((3, 2), 99)),
        ),
        nonsense(
            encode_statistic_answer(StatisticAnswer("A", {}, {}, {}), QUESTION),
            "values",
            "statistics",
            Array(np.ones((2, 4))),
        ),
    ],
)
def test_an_answer_that_is_none_is_refused(content):
    with pytest.raises(InvalidReply):
        decode_statistic_answer(content, QUESTION)


def test_each_variable_needs_a_table_or_a_refusal():
    for answer in (TableAnswer("A", TABLES, {}), TableAnswer("A", TABLES, {"a": REFUSALS["b"], "b": REFUSALS["b"]})):
        with pytest.raises(InvalidReply, match="either a table or a refusal"):
            decode_table_answer(encode_table_answer(answer, QUESTION), QUESTION)


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=6, unique=True), min_size=1, max_size=5))
def test_any_tables_make_the_round_trip(limits):
    tables = {
        f"v{i}": Table(sorted(found), np.arange(2.0 * (len(found) - 1)).reshape(2, -1))
        for i, found in enumerate(limits)
        if len(found) > 1
    }
    question = Question(tuple(f"v{i}" for i in range(len(limits))), "g", ("x", "y"))
    asked = TableQuestion(question, tables)
    assert decode_table_question(travel(encode_table_question(asked))) == asked
