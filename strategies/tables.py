"""The sequential table: one center after the other joins it (paper, "Federated binning"; METHODS 4).

One round asks all centers for their sizes, then L centers take a round each, the largest first. A center gives away its
sizes and its own counts over united bins, each 0 or at least k. With 10 centers that is 11 rounds, whatever the
number of variables.
"""

from typing import Any

from flwr.app import ArrayRecord, RecordDict

from fed_mwu.errors import InvalidReply
from fed_mwu.exchange import WITHHELD, Counts, TableQuestion
from fed_mwu.messages import (
    decode_description,
    decode_table_answer,
    decode_tables,
    encode_question,
    encode_table_question,
    encode_tables,
)
from fed_mwu.outcomes import Participation, TableResult
from fed_mwu.rank_tests import table_test
from fed_mwu.results import RankTestResult
from fed_mwu.table import Table, are_private
from fed_mwu.transit import check_joined, check_private

from .base import FederatedStrategy
from .requests import Request
from .roster import Center

__all__ = ["SequentialTable"]


class SequentialTable(FederatedStrategy):
    """Build one table over all centers and, with two groups, test on it.

    Parameters are those of `FederatedStrategy`. The table travels in Flower's `arrays`, as "offsets", "limits" and
    "counts" of all variables together.

    Examples
    --------
    >>> from fed_mwu.simulations import Federation
    >>> values = {"no": range(40), "yes": range(5, 45)}
    >>> result = Federation({"A": values, "B": values}, k=10).run(SequentialTable())
    >>> result.tables["value"].sizes
    array([80., 80.])
    """

    analysis = "table"

    def _reset(self) -> None:
        super()._reset()
        self._tables: dict[str, Table] = {}
        self._announced: dict[int, dict[str, Counts]] = {}
        self._waiting: list[Center] | None = None

    def _ask(self, server_round: int, arrays: ArrayRecord) -> list[Request]:
        if server_round == 1:
            content = encode_question(self.question)
            return [Request(center, "describe", content, self.question) for center in self.roster]
        if self._waiting is None:
            self._waiting = self._by_size()
        if not self._waiting:
            return []
        center = self._waiting.pop(0)
        question = self.question.about(list(self._announced[center.node_id]))
        known = decode_tables(arrays, self.question.variables, len(self.question.groups)) if "limits" in arrays else {}
        tables = {variable: table for variable, table in known.items() if variable in question.variables}
        return [Request(center, "table", encode_table_question(TableQuestion(question, tables)), question)]

    def _by_size(self) -> list[Center]:
        """Return the centers that can take part, the largest first; equal ones by name, for the same order always."""
        able = [center for node_id, center in self.roster.centers.items() if self._announced.get(node_id)]
        return sorted(able, key=lambda center: (-self._total(center), center.name))

    def _total(self, center: Center) -> int:
        return sum(sum(counts.sizes) for counts in self._announced[center.node_id].values())

    def _receive(self, request: Request, content: RecordDict) -> None:
        if request.action == "describe":
            self._receive_sizes(request, content)
        else:
            self._receive_tables(request, content)

    def _receive_sizes(self, request: Request, content: RecordDict) -> None:
        answer = decode_description(content, request.question)
        k = request.question.k
        for counts in answer.counts.values():
            if not are_private([*counts.sizes, *(n for n in counts.missing if n != WITHHELD)], k).all():
                raise InvalidReply("a size that it announced lies between 0 and k")
        self.roster.acknowledge(request.center, answer.center, answer.refusals, request.question)
        self._announced[request.center.node_id] = dict(answer.counts)

    def _receive_tables(self, request: Request, content: RecordDict) -> None:
        answer = decode_table_answer(content, request.question)
        announced = self._announced[request.center.node_id]
        for variable, table in answer.tables.items():
            self._check(variable, table, announced[variable], request.question.k)
        self.roster.acknowledge(request.center, answer.center, answer.refusals, request.question)
        for variable, table in answer.tables.items():
            self._tables[variable] = table
            counts = announced[variable]
            request.center.parts[variable] = Participation("took part", sizes=counts.sizes, missing=counts.missing)

    def _check(self, variable: str, table: Table, counts: Counts, k: int) -> None:
        before = self._tables.get(variable)
        if before is None:
            check_private(table, counts.sizes, k)
            return
        check_joined(before, table, counts.sizes)
        if not table.is_private(k):
            raise InvalidReply("a count of its table lies between 0 and k")

    def _end_round(self) -> ArrayRecord | None:
        return encode_tables(self.question.variables, self._tables)

    def _test(self, variable: str) -> RankTestResult | None:
        table = self._tables[variable]
        return table_test(table, alternative=self.alternative) if table.n_groups == 2 else None

    def result(self) -> TableResult:
        """Return the tables, the tests on them and what each center did."""
        common: dict[str, Any] = self._common()
        return TableResult(**common, tables={v: t for v, t in self._tables.items() if v not in common["failures"]})
