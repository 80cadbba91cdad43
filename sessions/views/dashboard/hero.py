"""The four figures at the top of the dashboard: spend, avoidable spend, recall and success."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sessions import figures
from sessions.figures import figure, finely, money
from sessions.models.cache.causes import AVOIDABLE, causes_in
from sessions.models.dashboard import quality_tiles, tiles
from sessions.models.dashboard.dashboards import Dashboard
from sessions.models.tools.unused import UnusedTools
from sessions.models.web.sums import Sums, Tile, Unit, Value, total
from sessions.views.web.sparklines import Trend, trend

_broken = total("avoidable", "split")


def _losses(sums: Sums) -> Value:
    return sums.of["losses"] or None


@dataclass(frozen=True, slots=True)
class HeroTile:
    """A figure with its change since the period before, its trend in both, and one line that
    explains it. `basis` is that of the value; `note` says what the change leaves out."""

    name: str
    title: str
    value: str
    basis: str
    at_least: bool
    change: str
    trend: Trend | None
    earlier: Trend | None
    line: str
    how: str
    url: str
    note: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return bool(self.value)


def change(now: Value, before: Value, unit: Unit) -> str:
    """A change in words, such as +12 %, −3 points or ×20; empty without comparison."""
    if now is None or before is None:
        return ""
    if unit == "share":
        return _points(round(100 * (now - before)))
    if not before:
        return "up from 0" if now else "no change"
    said = figures.change((now - before) / before)
    return "no change" if said == "0 %" else said


def _points(amount: int) -> str:
    if not amount:
        return "no change"
    return f"{'+' if amount > 0 else '−'}{abs(amount):,} point{'' if abs(amount) == 1 else 's'}"


def _trends(now: Sequence[Value], before: Sequence[Value]) -> tuple[Trend | None, Trend | None]:
    """Both on one scale; None where there is no trend to see."""
    top = max((one for one in (*now, *before) if one is not None), default=None)
    return trend(now, top), trend(before, top)


def spend(made: Dashboard, url: str, forecast: str) -> HeroTile:
    """What the sessions cost."""
    column = tiles.SPEND.columns[1]
    bound = "≥ " if column.at_least(made.whole) else ""
    each = figure(column.of(made.whole), "microusd")
    priced = _count(made.whole.of["priced"], "session")
    line = f"{bound}{each} per session, {priced} with a cost{forecast}"
    return _tile(made, tiles.SPEND, url, line)


def recall(made: Dashboard, url: str) -> HeroTile:
    """How much of what the model needed again was still in its context."""
    of = made.whole.of
    line = (
        f"{of['in_context']:,} of {_count(of['needs'], 'use')} of facts, in all steps of "
        f"{_count(of['recalled'], 'session')} that lost text or had a policy"
    )
    return _tile(made, quality_tiles.RECALL, url, line)


def success(made: Dashboard, url: str) -> HeroTile:
    """How many sessions succeeded, by their agents' reports."""
    of = made.whole.of
    line = f"{of['succeeded']:,} of {_count(of['reported_outcome'], 'session')} with an outcome"
    none = f"{_count(of['sessions'], 'session')} reported no outcome."
    return replace(
        _tile(made, tiles.OUTCOMES, url, line if of["reported_outcome"] else none), title="Success"
    )


def _tile(made: Dashboard, tile: Tile, url: str, line: str) -> HeroTile:
    column = tile.columns[0]
    value = column.of(made.whole)
    now, before = ([column.of(part) for part in parts] for parts in (made.parts, made.earlier))
    written = finely(value) if column.unit == "share" else figure(value, column.unit)
    unknown = line if tile is tiles.OUTCOMES else made.none(tile)
    return HeroTile(
        tile.name,
        tile.title,
        "" if value is None else written,
        made.basis(tile),
        column.at_least(made.whole) and bool(value),
        change(value, column.of(made.before) if made.before else None, column.unit),
        *_trends(now, before),
        unknown if value is None else line,
        tile.how,
        url,
    )


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}{'' if many == 1 else 's'}"


HOW_AVOIDABLE = (
    f"{AVOIDABLE} Losses: calls made because "
    "text had left the context, without their cache breaks. Tools that no session of an agent "
    "used: their definitions in each prompt, in the newest sessions."
)


def avoidable(
    made: Dashboard, unused: UnusedTools, unused_before: UnusedTools | None, url: str
) -> HeroTile:
    """What the sessions paid for nothing, as far as known.

    If older sessions with tool definitions were not looked at, unused tools are in the value, but
    not in its change and trend.
    """
    period = made.period
    definitions = _by_part(unused.costs(), period.since, period.size, len(made.parts))
    whole = sum(definitions)
    older: list[int] = [0] * len(made.earlier)
    if not unused.complete:
        definitions = [0] * len(definitions)
    elif unused_before is not None:
        older = _by_part(unused_before.costs(), period.origin, period.size, len(older))
    now = [_paid(*one) for one in zip(made.parts, definitions, strict=True)]
    earlier = [_paid(*one) for one in zip(made.earlier, older, strict=True)]
    value, shown = _paid(made.whole, whole), _paid(made.whole, sum(definitions))
    if made.whole.of["not_assessed"] and not value:
        value = shown = None
    was = _paid(made.before, sum(older)) if made.before else None
    line = _parts_of(made, value, whole)
    guessed = whole or _losses(made.whole)
    return HeroTile(
        "avoidable",
        "Avoidable spend",
        "" if value is None else money(round(value)),
        "estimated" if guessed else "measured",
        value is not None and _short(made.whole, value),
        change(shown, was, "microusd"),
        *_trends(now, earlier),
        line if value is not None else _not_known(made),
        HOW_AVOIDABLE,
        url,
        note="" if unused.complete or not whole else "without unused tools",
    )


def _short(whole: Sums, value: float) -> bool:
    """Whether sessions without a cost make it a lower bound; of nothing, if they have breaks."""
    unknown = any(one.avoidable and one.priced < one.sessions for one in causes_in(whole))
    short = whole.of["avoidable_short"] or whole.of["not_assessed"]
    return bool(short) and (bool(value) or unknown)


def _not_known(made: Dashboard) -> str:
    """Why avoidable spend is unknown: nothing found yet in the sessions that were assessed is not
    nothing."""
    of = made.whole.of
    if 0 < of["not_assessed"] < of["sessions"]:
        return f"{of['assessed']:,} of {_count(of['sessions'], 'session')} assessed so far"
    return made.none(tiles.AVOIDABLE)


def _paid(sums: Sums, definitions: int) -> Value:
    """Cache breaks, losses and unused tools; None if none of them is known."""
    known = [one for one in (_broken(sums), _losses(sums), definitions or None) if one is not None]
    return sum(known) if known else None


def _parts_of(made: Dashboard, value: Value, definitions: int) -> str:
    cost = made.whole.of["cost"]
    share = f"{finely((value or 0) / cost)} of spend" if cost else "no spend known"
    share = f"{share}, for what went wrong"
    broken, lost = _broken(made.whole), _losses(made.whole)
    parts = [
        ("cache breaks", broken, ""),
        ("losses", lost, "≈"),
        ("unused tools", definitions, "≈"),
    ]
    named = [f"{name} {mark}{money(round(paid))}" for name, paid, mark in parts if paid]
    return f"{share}: {', '.join(named)}" if named else share


def _by_part(costs: Iterable[tuple[int, int]], origin: int, size: int, many: int) -> list[int]:
    found = [0] * many
    for at, cost in costs:
        index = (at - origin) // size
        if 0 <= index < many:
            found[index] += cost
    return found
