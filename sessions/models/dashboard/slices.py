"""Sums of a team's days by agent, model and policy: the dashboard of some of its sessions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest

import msgspec

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import Slice, add_up_slices, add_up_some
from sessions.models.dashboard.day_totals import KeptSums, kept, kept_texts, spans_of
from sessions.models.web.periods import DAY, Period
from sessions.models.web.sums import Sums

MOST = 200
"""Most slices kept of a day or week: what a page reads has a bound, whatever agents are named."""

REST: Slice = ("", "", "…")
"""All slices beyond these, as one: no filter matches it."""

KeptSlices = list[tuple[str, str, str, KeptSums]]
"""Slices as stored."""


class _KeptCounts(msgspec.Struct):
    """The sums of a slice by name."""

    of: dict[str, int] = {}


_UNREAD = msgspec.json.Decoder(list[tuple[str, str, str, msgspec.Raw]])
"""Slices with the sums of each as text: a split needs those of few."""
_WHOLE, _COUNTS = msgspec.json.Decoder(KeptSums), msgspec.json.Decoder(_KeptCounts)


@dataclass(frozen=True, slots=True)
class Split:
    """Which sessions a dashboard shows: those of an agent, a model, or a policy, given by name or
    as name@3 for one version. Empty for all."""

    agent: str = ""
    model: str = ""
    policy: str = ""

    def __bool__(self) -> bool:
        return bool(self.agent or self.model or self.policy)

    @property
    def chosen(self) -> dict[str, str | int]:
        """The values that its sessions have, as `add_up_some` takes them."""
        name, _, number = self.policy.partition("@")
        values: dict[str, str | int] = {"agent": self.agent, "model": self.model, "policy": name}
        if number:
            known = number.isdecimal() and len(number) < 10
            values["number"] = int(number) if known else 0
        return {name: value for name, value in values.items() if value or name == "number"}

    def matches(self, one: Slice) -> bool:
        """Whether a slice's sessions are shown."""
        agent, model, policy = one
        return (
            one != REST
            and self.agent in ("", agent)
            and self.model in ("", model)
            and self.policy in ("", policy, policy.partition("@")[0])
        )


EVERYTHING = Split()


def merged(slices: Iterable[tuple[Slice, Sums]]) -> KeptSlices:
    """Slices added up for storage: the largest ones by sessions, and the rest as one."""
    found: dict[Slice, Sums] = defaultdict(Sums)
    for one, sums in slices:
        found[one].add(sums)
    most = set(nlargest(MOST, found, key=lambda one: (found[one].of["sessions"], one)))
    for one in found.keys() - most - {REST}:
        found[REST].add(found.pop(one))
    return [(*one, KeptSums.of_sums(sums)) for one, sums in sorted(found.items())]


def read_slices(text: str) -> Iterator[tuple[Slice, Sums]]:
    """Stored slices."""
    for agent, model, policy, kept_sums in msgspec.json.decode(text, type=KeptSlices):
        sums = Sums()
        kept_sums.add_to(sums)
        yield (agent, model, policy), sums


def split_sums(team: Team, period: Period, split: Split) -> Iterator[tuple[int, Sums]]:
    """The sums of the sessions of a split, with the number of the part that they belong to. The
    number of sessions that are not split counts as `unsplit`."""
    found = kept(team, spans_of(period), hourly=period.size < DAY)
    for day, text in kept_texts(team, found.days, "slices", weekly=period.weekly):
        for agent, model, policy, unread in _UNREAD.decode(text):
            sums = _shown((agent, model, policy), unread, split)
            if sums is not None:
                yield (day * DAY - period.origin) // period.size, sums
    rest = found.but_days
    yield from add_up_some(team, rest, period.origin, period.size, split.chosen).items()


def slices_in(
    team: Team, period: Period, split: Split = EVERYTHING, names: Collection[str] = ()
) -> dict[Slice, Sums]:
    """The sums of each slice of a period that a split shows, without one also the rare ones of a
    day together (`REST`); of kept days only those with these names, if any is given, and without
    `peaks` and `steps`, which take most of the time to read."""
    found = kept(team, [(period.since, period.until)])
    made: dict[Slice, Sums] = defaultdict(Sums)
    for _, text in kept_texts(team, found.days, "slices", weekly=True):
        for agent, model, policy, unread in _UNREAD.decode(text):
            one = agent, model, policy
            if not split or split.matches(one):
                of = _COUNTS.decode(unread).of
                made[one].of.update({name: of[name] for name in names or of if name in of})
    for (_, one), sums in add_up_slices(team, found.but_days, 0, DAY).items():
        if not split or split.matches(one):
            made[one].add(sums)
    return made


def _shown(one: Slice, unread: msgspec.Raw, split: Split) -> Sums | None:
    sums = Sums()
    if split.matches(one):
        _WHOLE.decode(unread).add_to(sums)
    elif one == REST:
        sums.of["unsplit"] = _COUNTS.decode(unread).of["sessions"]
    else:
        return None
    return sums
