"""Spans to summarize, answers of a provider, and the worker that asks it."""

from __future__ import annotations

from typing import Any

from compaction.context.blocks import Block, FileRef
from compaction.context.stubs import reference
from compaction.proposals.plan import Span
from compaction.summaries.model.answer import Checks
from compaction.summaries.summary import file_operation, render
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.live import tend
from sessions.models import Session
from sessions.summarizers import AnthropicSummarizer
from tests.build import Talk, rough

MODEL = "claude-haiku-5-5"


def talk_of(*results: str) -> Talk:
    talk = Talk()
    talk.user("Please mend the parser in src/parse.py.")
    for number, text in enumerate(results):
        talk.respond()
        path = f"src/f{number}.py"
        use = talk.call("Read", {"file_path": path}, file=FileRef(path, "read"))
        talk.result(use, text)
    return talk


def span_of(talk: Talk, form: Any = "nine", **fields: Any) -> Span:
    blocks: tuple[Block, ...] = tuple(talk.blocks)
    values: dict[str, Any] = {"previous": None, "budget": 500}
    return Span(form=form, blocks=blocks, originals=blocks, **(values | fields))


def good(span: Span, work: str = "mending the parser") -> str:
    read = next(block for block in span.originals if block.type == "tool_result")
    lines = {
        "primary_request_and_intent": ["mend the parser"],
        "problem_solving": [file_operation("src/f0.py", "read", reference(read))],
        "current_work": [work],
    }
    return render(lines)


def stored(span: Span, answer: str) -> str:
    """A valid answer as stored: its own sections, and those written by code."""
    return Checks.of(span, rough).summary(answer)


def ask(span: Span, **fields: Any) -> Any:
    values: dict[str, Any] = {"seconds": 20, "retries": 0}
    return AnthropicSummarizer(MODEL, **(values | fields)).summarize(span, rough)


def work(stored: Session) -> None:
    """Run the worker's part."""
    job = jobs.claim(tend.ask(stored).pk)
    assert job is not None and job.token is not None
    attempt(job.pk, job.token)
