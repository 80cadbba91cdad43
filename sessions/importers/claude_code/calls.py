"""The model calls of one agent of a Claude Code log, reconstructed from response lines."""

from __future__ import annotations

from sessions.importers.claude_code.entry import LogEntry
from sessions.importers.records import Call
from sessions.importers.reported import anthropic_usage
from sessions.importers.wire import string

SYNTHETIC = "<synthetic>"
"""The client's model name for responses it wrote itself."""

_SMALL_WINDOW = 200_000
_LARGE_WINDOW = 1_000_000
_SMALL_MODELS = ("claude-3", "claude-sonnet-4", "claude-opus-4", "claude-haiku-4")


class Calls:
    """Collects calls as their lines arrive; `model` is the first one called.

    All lines of a response carry its usage with a growing output count, so the last one is right. A
    client with another version, or after an exit command (`leave`), counts as restarted.
    """

    def __init__(self) -> None:
        self.model = ""
        self._known: dict[str, Call] = {}
        self._peak = 0
        self._left = 0

    def __contains__(self, call: str) -> bool:
        return call in self._known

    @property
    def window(self) -> int | None:
        """The model's window in tokens; None if unknown."""
        if "[1m]" in self.model or self._peak > _SMALL_WINDOW:
            return _LARGE_WINDOW
        return _SMALL_WINDOW if self.model.startswith(_SMALL_MODELS) else None

    def leave(self) -> None:
        """Note that the user exited the client; later lines come from a restarted one."""
        self._left += 1

    def report(self, entry: LogEntry) -> Call | None:
        """The call record for a line; None if it adds nothing."""
        raw = entry.message.get("usage")
        model = string(entry.message.get("model"))
        reported = anthropic_usage(raw)
        usage = None if model == SYNTHETIC else reported.usage
        stop = "api_error" if entry.is_error else string(entry.message.get("stop_reason"))
        known = self._known.get(entry.call)
        if known and usage in (None, known.usage) and stop in ("", known.stop_reason):
            return None
        report = Call(
            call=entry.call,
            model=model,
            at=known.at if known else entry.at,
            usage=usage,
            usage_raw=raw if usage else None,
            reconciles=reported.reconciles,
            stop_reason=stop,
            line=entry.line,
            settings=string(entry.given.get("effort")),
            client=f"{string(entry.given.get('version'))} {self._left}",
        )
        self._known[entry.call] = report
        self._note(report)
        return report

    def _note(self, report: Call) -> None:
        if report.model != SYNTHETIC:
            self.model = self.model or report.model
        if report.usage:
            self._peak = max(self._peak, report.usage.prompt)
