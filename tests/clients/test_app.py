"""The ClientApp as Flower calls it: every path ends in a reply, and no reply quotes data."""

import json
import logging

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from fed_mwu.clients.app import make_app
from fed_mwu.clients.source import GroupSource
from fed_mwu.errors import Decline
from fed_mwu.exchange import DECLINES, Question, TableQuestion
from fed_mwu.messages import decode_description, encode_question, encode_table_question

SECRET_VALUE = 123456.789
QUERIES = ("describe", "table", "statistic")


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def question(*variables):
    return Question(variables or ("v",), "group", ("no", "yes"), k=3)


def ask(app, query, content):
    context = Context(run_id=1, node_id=2, node_config={}, state=RecordDict(), run_config={})
    reply = app(Message(content, 2, f"query.{query}"), context)
    assert isinstance(reply, Message)
    assert not reply.has_error()
    return reply.content


class Failing:
    """A source whose data raise an exception that quotes them."""

    name = "A"
    minimum_k = 1
    secret = b""

    def __init__(self, error):
        self.error = error

    def groups(self, variable, column, labels):
        raise self.error


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"bad value {SECRET_VALUE}"),
        KeyError(SECRET_VALUE),
        MemoryError(str(SECRET_VALUE)),
        ZeroDivisionError(),
    ],
)
def test_an_exception_becomes_a_typed_decline_and_its_text_stays(query, error, caplog):
    app = make_app(lambda context: Failing(error))
    with caplog.at_level(logging.DEBUG):
        content = ask(app, query, encode_table_question(TableQuestion(question(), {})))
    record = content["answer"]
    assert dict(record) == {"protocol": 1, "center": "A", "declined": "internal-error"}
    assert type(error).__name__ in caplog.text
    assert "test_app.py" in caplog.text
    assert str(SECRET_VALUE) not in caplog.text + str(content)


@pytest.mark.parametrize("query", QUERIES)
def test_data_that_cannot_be_opened_are_a_decline(query):
    def fail(context):
        raise Decline("no-data", "nothing here")

    def crash(context):
        raise OSError(f"/secret/{SECRET_VALUE}")

    for open_data, code in ((fail, "no-data"), (crash, "internal-error")):
        content = ask(make_app(open_data), query, encode_question(question()))
        assert content["answer"]["declined"] == code
        assert str(SECRET_VALUE) not in str(content)


@pytest.mark.parametrize("query", QUERIES)
def test_an_empty_message_is_a_decline(query):
    source = GroupSource("A", {"v": {"no": range(5), "yes": range(5)}})
    content = ask(make_app(lambda context: source), query, RecordDict())
    assert content["answer"]["declined"] == "bad-request"


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", ["'; DROP TABLE patients; --", "../../etc/passwd", "a\x00b", "𝕍" * 50, "__class__"])
def test_strange_names_are_only_names(query, name):
    source = GroupSource("A", {"v": {"no": range(5), "yes": range(5)}})
    content = ask(
        make_app(lambda context: source), query, encode_table_question(TableQuestion(question(name, "v"), {}))
    )
    refused = content["values"]["refused"].numpy()
    assert refused[0, 0] == list(DECLINES).index("unknown-variable") + 1
    assert refused[1, 0] == 0


def numbers_in(content):
    """All numbers of a reply, from its arrays and its config."""
    arrays = [array.numpy().ravel() for record in content.array_records.values() for array in record.values()]
    configured = [
        v for record in content.config_records.values() for v in record.values() if isinstance(v, (int, float))
    ]
    return np.concatenate([*arrays, configured]).astype(float)


@pytest.mark.parametrize("ends", ["open"])
def test_no_reply_holds_a_value_or_a_small_count(rng, ends):
    # Structural: every number of every reply is scanned, whatever it stands for.
    values = {"no": rng.normal(1000, 50, size=60), "yes": rng.normal(1000, 50, size=45)}
    few = {"no": rng.normal(1000, 50, size=60), "yes": rng.normal(1000, 50, size=7)}
    source = GroupSource("A", {"v": values, "few": few})
    app = make_app(lambda context: source)
    asked = Question(("v", "few"), "group", ("no", "yes"), k=10)
    raw = np.concatenate([*values.values(), *few.values()])
    tables = {}
    for query in QUERIES:
        content = ask(app, query, encode_table_question(TableQuestion(asked, tables)))
        numbers = numbers_in(content)
        assert not np.isin(numbers, raw).any()
        counts = content["tables"]["counts"].numpy() if query == "table" else numbers[np.isin(numbers, [7, 60, 67])]
        assert not ((counts > 0) & (counts < 10)).any()
        if query == "describe":
            described = decode_description(content, asked)
            assert "few" in described.refusals
            assert 7 not in numbers
            assert json.dumps(sorted(described.counts)) == '["v"]'
