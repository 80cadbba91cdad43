"""How long a served revision took: counting, shaping, and the summary that it put in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns

from compaction import edits


@dataclass(frozen=True, slots=True)
class Times:
    """Measured: counting tokens (`estimate_us`), everything else that the fold did for this step
    (`shaping_us`), and how long the summary took to be made, None without one."""

    estimate_us: int
    shaping_us: int
    summary_ms: int | None = None


@dataclass(slots=True)
class Stopwatch:
    """Runs while a fold is advanced; `counting` and `outside` add up nanoseconds since it began.

    `outside` is what the fold waits for: artefacts that are looked up, or made at once.
    """

    counting: int = 0
    outside: int = 0
    summary_ms: int | None = None
    times: dict[int, Times] = field(default_factory=dict)
    _began: int = 0

    def begin(self) -> None:
        """A step begins."""
        self._began, self.counting, self.outside, self.summary_ms = perf_counter_ns(), 0, 0, None

    def note(self, revision: edits.Revision) -> None:
        """The step has made this revision."""
        whole = perf_counter_ns() - self._began
        rest = max(whole - self.counting - self.outside, 0)
        self.times[revision.number] = Times(self.counting // 1000, rest // 1000, self.summary_ms)

    def over(self, made: Iterator[edits.Revision]) -> Iterator[edits.Revision]:
        """The same revisions, each noted as it is made."""
        while True:
            self.begin()
            revision = next(made, None)
            if revision is None:
                return
            self.note(revision)
            yield revision
