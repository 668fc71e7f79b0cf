"""What `start` returns: Flower's result of a run together with the statistical one."""

from dataclasses import dataclass, field

from flwr.serverapp.strategy import Result

from fed_mwu.errors import TooFewCenters
from fed_mwu.outcomes import FederatedResult

__all__ = ["StrategyResult", "check_enough"]


@dataclass
class StrategyResult(Result):
    """Flower's result of a run together with the statistical one.

    Parameters
    ----------
    analysis : FederatedResult
        Tests, centers, rounds and bytes.
    """

    analysis: FederatedResult = field(kw_only=True)

    def summary(self) -> str:
        """Return the centers and the tests as text."""
        return self.analysis.summary()

    def _repr_html_(self) -> str:
        return self.analysis._repr_html_()


def check_enough(found: FederatedResult, least: int) -> None:
    """Refuse a result in which no variable has enough centers.

    Raises
    ------
    TooFewCenters
        Telling what each center did.
    """
    if len(found.failures) < len(found.question.variables):
        return
    first = found.question.variables[0]
    said = []
    for center in found.centers:
        part = center.variables[first]
        said.append(f"{center.name} {part.status}" + (f" ({part.reason})" if part.reason else ""))
    centers = "; ".join(said) or "no center is connected"
    raise TooFewCenters(f"fewer than min_centers={least} centers took part with {first}: {centers}", found)
