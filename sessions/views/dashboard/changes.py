"""What changed since the period before: a sentence for each figure, with what moved it most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.urls import reverse

from sessions.figures import figure, finely, money, tokens
from sessions.models import Team
from sessions.models.cache.causes import CauseSums, asked_of, causes_in
from sessions.models.dashboard.dashboards import Dashboard
from sessions.models.dashboard.drivers import Driver, driver_of
from sessions.models.dashboard.slices import Split, slices_in
from sessions.models.web.periods import DAY
from sessions.models.web.sums import Sums, Unit, Value, ratio, total
from sessions.views.dashboard.controls import query
from sessions.views.dashboard.hero import change
from sessions.views.dashboard.links import part_days, sessions_url


@dataclass(frozen=True, slots=True)
class MovingFigure:
    """A figure that is compared: the sum above, the sums below (none for a total) and what they
    count, and the count of sessions without which a total is unknown."""

    name: str
    unit: Unit
    above: str
    below: tuple[str, ...] = ()
    of: str = ""
    known: str = "sessions"

    def value(self, sums: Sums) -> Value:
        """The figure; None if it is unknown."""
        of = ratio(self.above, *self.below) if self.below else total(self.above, self.known)
        return of(sums)

    def written(self, sums: Sums) -> str:
        """The figure in words, a share with its whole."""
        value = self.value(sums)
        if not self.below:
            return figure(value, self.unit)
        return f"{finely(value)} of {tokens(sum(sums.of[name] for name in self.below))} {self.of}"


SPEND = MovingFigure("Spend", "microusd", "cost", known="priced")
AVOIDABLE = MovingFigure("Avoidable rewrites", "microusd", "avoidable", known="split")
FIGURES = (
    MovingFigure("Number of sessions", "count", "sessions"),
    SPEND,
    AVOIDABLE,
    MovingFigure(
        "Cache read share", "share", "read", ("uncached", "read", "write"), "prompt tokens"
    ),
    MovingFigure("Needed-later recall", "share", "in_context", ("needs",), "uses of facts"),
    MovingFigure("Success", "share", "succeeded", ("reported_outcome",), "reported outcomes"),
)
_SUMS = {name for one in FIGURES for name in (one.above, *one.below)}


@dataclass(frozen=True, slots=True)
class ChangedFigure:
    """A figure's change in a sentence, and where its largest part is shown."""

    sentence: str
    link: str = ""
    url: str = ""


def changed_figures(team: Team, made: Dashboard, split: Split) -> list[ChangedFigure]:
    """A sentence for each figure that is known in both periods; none without a period before that
    has sessions."""
    if made.before is None or not made.before.of["sessions"] or not made.period.before:
        return []
    return list(_sentences(team, made, split))


def _sentences(team: Team, made: Dashboard, split: Split) -> Iterator[ChangedFigure]:
    period = made.period
    assert period.before is not None
    # Whole days only: parts of days are not kept by agent, model and policy, and reading their
    # sessions takes longer than all else on the page.
    times = (period, replace(period, since=period.before[0], until=period.since))
    now, before = (slices_in(team, of, split, _SUMS) if period.size >= DAY else {} for of in times)
    for compared in FIGURES:
        assert made.before is not None
        value, was = compared.value(made.whole), compared.value(made.before)
        if value is None or was is None:
            continue
        moved = change(value, was, compared.unit)
        written, written_before = compared.written(made.whole), compared.written(made.before)
        if moved == "no change":
            yield ChangedFigure(f"{compared.name} did not change: {written}.")
            continue
        verb = "rose" if value > was else "fell"
        said = f"{compared.name} {verb} from {written_before} to {written}"
        said += "" if moved == "up from 0" else f" ({moved})"
        if compared is AVOIDABLE:
            yield _by_cause(made, said, split, rose=value > was)
        else:
            found = driver_of(now, before, compared.above, *compared.below)
            same_way = found is not None and (found.part > 0) == (value > was)
            yield _by_driver(made, said, split, found if same_way else None)


def _by_driver(made: Dashboard, said: str, split: Split, found: Driver | None) -> ChangedFigure:
    if found is None:
        return ChangedFigure(f"{said}.")
    chosen = replace(split, **{found.by: found.value})
    url = sessions_url(made.period, chosen, sort="cost")
    return ChangedFigure(f"{said}, mostly {found.by} {found.value}.", "Its sessions", url)


def _by_cause(made: Dashboard, said: str, split: Split, *, rose: bool) -> ChangedFigure:
    """With the cause of cache breaks that changed most."""
    assert made.before is not None
    now, before = ({one.key: one for one in causes_in(of)} for of in (made.whole, made.before))
    moved = {
        key: _cost(now.get(key)) - _cost(before.get(key)) for key in now.keys() | before.keys()
    }
    key = max(moved, key=lambda one: moved[one] if rose else -moved[one], default=None)
    if key is None or (moved[key] > 0) != rose:
        return ChangedFigure(f"{said}.")
    name = (now.get(key) or before[key]).name
    days = part_days(made.period.since, made.period.until)
    url = f"{reverse('cache')}{query(split, **days, **asked_of(*key))}#worst"
    part = f"{'+' if rose else '−'}{money(abs(moved[key]))}"
    return ChangedFigure(f"{said}, mostly “{name}”: {part}.", "Its cache breaks", url)


def _cost(cause: CauseSums | None) -> int:
    return (cause.microusd or 0) if cause is not None and cause.avoidable else 0
