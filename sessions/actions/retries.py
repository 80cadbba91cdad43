"""Retries: a failed step is done again, alone, from what it saw and how it failed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from compaction import wire
from sessions.importers import records
from sessions.importers.delivered import Unacceptable
from sessions.models import Session
from sessions.models.values import contents

MOST = 4_000
"""Code points of all errors of a step that are told again: of a longer text both ends."""


class NothingFailed(ValueError):
    """A step without a failed tool call: nothing to do again."""


def errors_of(session: Session, step: int) -> str:
    """What is told of a failed step to whoever does it again: each call that failed and its error.

    The same bytes every time. Raises NothingFailed.
    """
    failed = session.blocks.filter(born=step + 1, type="tool_result", error=True)
    rows = list(failed.order_by("position"))
    if not rows:
        raise NothingFailed(f"No tool call of step {step} failed.")
    data = contents(session, [row.sha for row in rows])
    room = MOST // len(rows)
    told = []
    for row in rows:
        text = _both_ends(wire.text_of(wire.decode(data[row.sha])), room)
        told.append(f'<error tool="{escape(row.tool)}">{escape(text, quote=False)}</error>')
    asked = "This step was tried before and failed as follows. Do it again, and right this time."
    return "\n".join([f'<failed_step number="{step}">', asked, *told, "</failed_step>"])


def _both_ends(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    half = room // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def check_retries(session: Session, messages: Iterable[records.Message]) -> None:
    """Raises Unacceptable for a message that says it does a step again which there is not yet."""
    steps = session.step_count
    for index, message in enumerate(messages):
        if message.retry_of is not None and message.retry_of > steps:
            problem = f"names a step that is not there: the session has {steps}"
            raise Unacceptable(f"/messages/{index}/retry_of", problem)
        steps += message.role == "assistant"
