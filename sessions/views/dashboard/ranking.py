"""A fix, and which comes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST = 5
"""Most fixes shown."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to do: the cause, the micro-dollars that it saves in the range (None if unknown,
    and then `basis` says why), and where it is done.

    `kind` is break, loss or unused; `at_least` if some sessions have no cost.
    """

    kind: str
    title: str
    why: str
    microusd: int | None
    basis: str
    button: str
    url: str
    at_least: bool = False
    proof_url: str = ""
    """Where an example is shown, if there is one."""
    starts: str = ""
    """Where its button starts what it says, by a POST; empty if it only leads to `url`."""
    sessions: int = 0
    """Sessions that the amount was found in; 0 if not counted."""
    unknown: str = "unknown"
    """Said in place of an amount that is None."""
    at_most: bool = False
    """Whether the amount is all that the breaks cost: a fix may save less."""
    spent: tuple[int, int] | None = None
    """Micro-dollars that the amount is a part of, and how many sessions cost them; None if those
    are all of the range."""
    forgets: float | None = 0.0
    """Share of what is needed later that it keeps less of in context; 0 if the lab calls that the
    same, None if it is unknown."""

    @property
    def loses(self) -> str:
        """What is lost by it, in words."""
        if self.forgets is None:
            return "recall unknown"
        return f"−{self.forgets * 100:.1f} points recall" if self.forgets else "loses nothing"


def ranked(rows: Iterable[Fix]) -> list[Fix]:
    """What saves most, then what saves an unknown amount, which the page does not rank; at most
    `MOST`, and the latter are never left out.

    The first keeps all that is needed later, if any that saves does (our choice): what to do first
    should cost nothing else.
    """
    rows = list(rows)
    unknown = sorted(
        (one for one in rows if one.microusd is None), key=lambda one: one.kind != "loss"
    )
    known = sorted(
        (one for one in rows if one.microusd is not None), key=lambda one: -(one.microusd or 0)
    )
    keeps = (one for one in known if one.forgets == 0 and (one.microusd or 0) > 0)
    if (first := next(keeps, None)) is not None:
        known.remove(first)
        known.insert(0, first)
    return known[: MOST - len(unknown)] + unknown
