"""Times of the steps of a managed run, as they are measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns

from compaction.context import edits
from sessions.actions.live.runs import Times


@dataclass(slots=True)
class Stopwatch:
    """Measures the steps of a fold; `counting` and `outside` are nanoseconds since the step began.

    `outside` is time spent waiting for artefacts.
    """

    counting: int = 0
    outside: int = 0
    summary_ms: int | None = None
    times: dict[int, Times] = field(default_factory=dict)
    _began: int = 0

    def begin(self) -> None:
        """Begin a step."""
        self._began, self.counting, self.outside, self.summary_ms = perf_counter_ns(), 0, 0, None

    def note(self, revision: edits.Revision) -> None:
        """Record the times of a step's revision."""
        whole = perf_counter_ns() - self._began
        rest = max(whole - self.counting - self.outside, 0)
        self.times[revision.number] = Times(self.counting // 1000, rest // 1000, self.summary_ms)

    def over(self, made: Iterator[edits.Revision]) -> Iterator[edits.Revision]:
        """Pass revisions through, measuring each."""
        while True:
            self.begin()
            if (revision := next(made, None)) is None:
                return
            self.note(revision)
            yield revision
