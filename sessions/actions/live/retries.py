"""Retries: repeat a failed step, with its own context and error."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from compaction.context import wire
from sessions.importers import records
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Session
from sessions.models.record.values import contents

MOST = 4_000
"""Maximum length of all errors of a step, in code points; longer texts keep both ends."""


class NothingFailed(ValueError):
    """The step has no failed tool call."""


def errors_of(session: Session, step: int) -> str:
    """The errors of a failed step for its retry: each failed call with its error.

    Deterministic. Raises NothingFailed.
    """
    failed = session.blocks.filter(born=step + 1, type="tool_result", error=True)
    rows = list(failed.order_by("position"))
    if not rows:
        raise NothingFailed(f"Step {step} has no failed tool call, so there is nothing to retry.")
    data = contents(session, [row.sha for row in rows])
    room = MOST // len(rows)
    failures = []
    for row in rows:
        text = _both_ends(wire.text_of(wire.decode(data[row.sha])), room)
        failures.append(f'<error tool="{escape(row.tool)}">{escape(text, quote=False)}</error>')
    asked = "This step was tried before and failed as follows. Do it again, and right this time."
    return "\n".join([f'<failed_step number="{step}">', asked, *failures, "</failed_step>"])


def _both_ends(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    half = room // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def check_retries(session: Session, messages: Iterable[records.Message]) -> None:
    """Raise Unacceptable for a message that retries a step that does not exist."""
    steps = session.step_count
    for index, message in enumerate(messages):
        if message.retry_of is not None and message.retry_of > steps:
            problem = f"names a missing step; the session has {steps}"
            raise Unacceptable(f"/messages/{index}/retry_of", problem)
        steps += message.role == "assistant"
