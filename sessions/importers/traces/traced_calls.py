"""Model calls of traces, and which of them count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sessions.importers.records import Call, Json
from sessions.importers.reported import NOTHING, Reported
from sessions.importers.traces.said import TraceMessage
from sessions.importers.wire import mapping

LONGEST = 60
"""Characters of a stop reason, and of other short fields."""

REPEATS = "response.spans"
"""Where the usage of a call, as reported, names the spans that repeat it."""


_Timed = TypeVar("_Timed")


@dataclass(slots=True)
class TracedCall:
    """One model call, or one tool call of a trace without model calls.

    `group` is the conversation or trace. `said` is the prompt, or the result of the tool. Times are
    milliseconds since the epoch. `parent` is the id of the span around it, `response` the
    provider's id of the response, `repeats` the ids of other spans with content that have it.
    """

    id: str
    group: str
    said: list[TraceMessage]
    answer: list[TraceMessage]
    at: int | None = None
    model: str = ""
    agent: str = ""
    usage: Reported = NOTHING
    usage_raw: Json = None
    stop_reason: str = ""
    tools: list[Json] = field(default_factory=list)
    is_model: bool = True
    line: int = 0
    parent: str = ""
    response: str = ""
    repeats: list[str] = field(default_factory=list)

    @property
    def has_content(self) -> bool:
        """Whether it says anything."""
        return bool(self.said or self.answer)

    @property
    def record(self) -> Call:
        """The call without its messages; what repeats it is with its usage."""
        raw = self.usage_raw if self.usage.usage else None
        return Call(
            call=self.id,
            model=self.model,
            at=self.at,
            usage=self.usage.usage,
            usage_raw={**mapping(raw), REPEATS: self.repeats} if self.repeats else raw,
            reconciles=self.usage.reconciles,
            stop_reason=self.stop_reason[:LONGEST],
            line=self.line,
            response=self.response,
        )

    def absorb(self, other: TracedCall) -> None:
        """Take over what another span of the call has: its name, if it has content, and its usage,
        if that says more. The result is the same in any order."""
        named = {*self.repeats, *other.repeats, *((other.id,) if other.has_content else ())}
        self.repeats = sorted(named - {self.id})
        if other._said_of_usage > self._said_of_usage:
            self.usage, self.usage_raw = other.usage, other.usage_raw

    @property
    def _said_of_usage(self) -> tuple[int, int, str]:
        """Usage that says more is larger: more counts, as of a cache, then more tokens, as at the
        end of a stream."""
        usage, raw = self.usage.usage, mapping(self.usage_raw)
        if usage is None:
            return -1, 0, ""
        return len(raw), usage.prompt + usage.output, repr(sorted(raw.items()))

    @property
    def order(self) -> tuple[int, int, str]:
        """Calls of a group sort by it: by time; at the same time, longer prompts are later."""
        return self.at or 0, len(self.said), self.id


def in_groups(calls: Iterable[TracedCall]) -> dict[str, list[TracedCall]]:
    """Calls by group."""
    groups: dict[str, list[TracedCall]] = {}
    for one in calls:
        groups.setdefault(one.group, []).append(one)
    return groups


def by_time(
    those: Sequence[_Timed],
    time: Callable[[_Timed], int | None],
    most: int,
    stored_until: Callable[[], int],
) -> Iterator[list[_Timed]]:
    """What is in the order of its time, cut into some of about `most`. A call that is not later
    than stored ones has these written again: those up to `stored_until` stay together, and those
    of one time."""
    if len(those) <= most:
        yield [*those]
        return
    last, some = stored_until(), list[_Timed]()
    for one in those:
        at = time(one) or 0
        if len(some) >= most and at > last:
            yield some
            some = []
        some.append(one)
        last = max(last, at)
    yield some


def counted_calls(calls: Iterable[TracedCall]) -> list[TracedCall]:
    """The calls of a group that count, in order.

    Tools' spans repeat what the next model call was sent, so they count only without model calls.
    A span repeats a model call, as an SDK's own beside that of an instrumentation, if it has the id
    of the same response, or no content and is within the span of the call. Of their usage that
    which says more counts.
    """
    calls = sorted({one.id: one for one in calls}.values(), key=lambda one: one.order)
    made = [one for one in calls if one.is_model]
    heard: dict[str, TracedCall] = {}
    answered: dict[str, TracedCall] = {}
    again: set[str] = set()
    for one in sorted(made, key=lambda one: not one.has_content):
        first = answered.get(one.response)
        if first is None and not one.has_content:
            first = heard.get(one.parent)
        if first is not None:
            again.add(one.id)
            first.absorb(one)
        elif one.response:
            answered[one.response] = one
        if one.has_content:
            heard |= dict.fromkeys((one.id, *one.repeats), first or one)
    return [one for one in made or calls if one.id not in again]
