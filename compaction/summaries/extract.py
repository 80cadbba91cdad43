"""The extractive summarizer: sections written by code, deterministically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape, unescape

from compaction.context.blocks import Block
from compaction.context.hints import LANGUAGES
from compaction.context.stubs import key_arguments
from compaction.facts.facts import facts
from compaction.proposals.plan import Span, SummaryForm
from compaction.seen.people import is_rejected, rejections
from compaction.seen.statements import decisions, next_step, telling_names
from compaction.seen.todo import newest_todo
from compaction.summaries.carry import brought_up, carried, keyed_lines, succeeded
from compaction.summaries.merge import Merged, is_undone, merge
from compaction.summaries.operations import (
    check_lines,
    command_lines,
    failure_lines,
    file_lines,
    rejected_line,
    result_line,
    trouble_line,
)
from compaction.summaries.said import Said, is_said, messages, reports, request, words_of_people
from compaction.summaries.shares import LISTS, MENDED, fitted, merged_lines, said_once
from compaction.summaries.summary import (
    UNKNOWN,
    named_by,
    quoted,
    render,
)

CODED: Mapping[SummaryForm, tuple[str, ...]] = {
    "nine": ("files_and_code", "errors_and_fixes", "all_user_messages", "pending_tasks"),
    "progress": ("file_operations", "commands"),
    "done": ("final_state",),
    "window": (),
}
"""Sections always written by code, from the log: files, failures, people's messages and open to-do
items. A model adds the sentences of `final_state`."""

OPEN_ENDS = ("pending_tasks", "next_plan", "optional_next_step")
"""Sections that say that nothing is known rather than that there is nothing."""

PLAN = 400
"""Code points from which a text may list what is to do (our choice)."""

LAST_CALLS = 3
"""Calls that the state of the work names, the last ones (our choice)."""


def extractive(span: Span) -> str:
    """Summarize a span without a model.

    From the blocks come files with what changed in them, failures with the lines that distinguish
    them and their outcome, the newest state of tests and builds, rejected calls, commands, people's
    messages and open to-do items; constraints, decisions, current work and the next step are
    quoted. Earlier summaries of any form are carried over. Each section keeps its share of the
    budget, so that summaries of summaries do not grow.
    """
    sections = fitted(said_once(_all_sections(span)), span.budget)
    for name in LISTS & sections.keys():
        others = "\n".join(line for one in sections if one != name for line in sections[one])
        said = facts(unescape(others))
        names = [one for one in sections[name] if one not in said]
        sections[name] = [", ".join(names)] if names else []
    return render(sections, span.form)


def coded(span: Span) -> dict[str, list[str]]:
    """Return the sections that code writes alongside a model, within their shares."""
    merged = _all_sections(span)
    ours = {name: merged[name] for name in CODED[span.form]}
    if "final_state" in ours:
        ours["final_state"] = [x for x in ours["final_state"] if named_by(x) is not None]
    return fitted(ours, span.budget)


def _all_sections(span: Span) -> dict[str, list[str]]:
    """Return all lines of all sections, old and new, without a budget."""
    known = carried(span.previous, span.form)
    made = {"nine": _nine, "progress": _progress, "done": _done, "window": _window}
    fresh = made[span.form](span)
    ended = succeeded(span.originals)
    lines: dict[str, list[str]] = {}
    for name, new in fresh.items():
        old = known.get(name, [])
        lines[name] = merged_lines(name, [brought_up(line, ended) for line in old], new)
        if name in OPEN_ENDS:
            unknown = UNKNOWN in new or (not new and (not known or UNKNOWN in old))
            said = [line for line in lines[name] if line != UNKNOWN]
            lines[name] = said or ([UNKNOWN] if unknown else [])
    if span.form == "progress":
        for name in ("file_operations", "commands"):
            lines[name] = keyed_lines(known.get(name, []), lines[name])
    return lines


def _nine(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    people = words_of_people(span)
    todos = open_todos(span, people)
    ways = merge(blocks)
    looked, ran = command_lines(ways)
    return {
        "primary_request_and_intent": request(span, people),
        "key_technical_concepts": _concepts(blocks),
        "files_and_code": file_lines(ways),
        "errors_and_fixes": failure_lines(ways, blocks),
        "problem_solving": [
            *looked,
            *ran,
            *reports(blocks),
            *_decided(blocks),
            *check_lines(blocks),
        ],
        "all_user_messages": messages(span, people),
        "pending_tasks": _pending(todos),
        "current_work": _current(blocks, people),
        "optional_next_step": _next_step(blocks, people, todos),
    }


def _progress(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    said = _said(blocks)
    people = words_of_people(span)
    todos = open_todos(span, people)
    ways = merge(blocks)
    looked, ran = command_lines(ways, keys=True)
    listed = todos is not None and UNKNOWN not in todos
    plan = _pending(todos) if listed else _next_step(blocks, people, todos)
    return {
        "task_overview": [
            *request(span, people),
            *(quoted(one.whole) for one in people[1:-1]),
        ],
        "steps": [*_steps(said, ways, blocks), *check_lines(blocks)],
        "current_state": _current(blocks, people),
        "next_plan": plan,
        "file_operations": file_lines(ways, keys=True),
        "commands": [*looked, *ran],
    }


def _done(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    said = _said(blocks)
    ways = merge(blocks)
    results = [result_line(b, 120) for b in blocks if b.type == "tool_result" and not b.error]
    return {
        "flow": [*request(span, words_of_people(span)), *(quoted(b.text) for b in said[:-1])],
        "findings": [
            *filter(None, results[-4:]),
            *failure_lines(ways, blocks),
            *check_lines(blocks),
        ],
        "final_state": [*file_lines(ways), *command_lines(ways)[1][-5:]],
        "result": [quoted(said[-1].text, 1_200)] if said else [],
    }


def _steps(said: Sequence[Block], ways: Merged, blocks: Sequence[Block]) -> list[str]:
    """Return what the agent said it did, each failure and each rejection, in order."""
    found = [(block.position, quoted(block.text)) for block in said[:-1]]
    found += [(way.failures[0].position, trouble_line(way)) for way in ways.troubles]
    found += [(one.result.position, rejected_line(one)) for one in rejections(blocks)]
    return [line for _, line in sorted(found)]


def _window(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    people = words_of_people(span)
    asked = [one.text for one in people if "?" in one.text or "？" in one.text]
    ways = merge(blocks)
    decided = [f"asked for: {quoted(one.whole, 140)}" for one in people[-4:]]
    decided += [quoted(b.text, 140) for b in _said(blocks)[-4:]]
    results = [b for b in blocks if b.type == "tool_result" and not is_rejected(b)]
    failed = [line for line in failure_lines(ways, blocks) if not line.endswith(MENDED)]
    return {
        "key_decisions": decided,
        "discoveries": [*(result_line(b, 120) for b in results[-6:]), *check_lines(blocks)],
        "unresolved_questions": [quoted(text, 120) for text in asked[-3:]] + failed[-3:],
        "entities_and_relations": [f"{one.path}: {one.action}" for one in ways.files],
    }


def _said(blocks: Iterable[Block]) -> list[Block]:
    return [block for block in blocks if is_said(block)]


def _concepts(blocks: Sequence[Block]) -> list[str]:
    """Return the names to know, and the languages of the files."""
    endings = (b.file.path.rsplit(".", 1)[-1].lower() for b in blocks if b.file is not None)
    languages = dict.fromkeys(LANGUAGES[e] for e in endings if e in LANGUAGES)
    return [*telling_names(blocks), *languages]


def _decided(blocks: Sequence[Block]) -> list[str]:
    return [quoted(one, 400) for one in decisions(b.text for b in _said(blocks))]


def _current(blocks: Sequence[Block], people: Sequence[Said]) -> list[str]:
    """Return the last calls of the agent with their outcome, its longest text since a person wrote,
    where it may list what is to do, and what it said last.
    """
    said = _said(blocks)
    since = people[-1].position if people else -1
    plans = [b for b in said[:-2] if b.position > since and len(b.text) >= PLAN]
    plans.sort(key=lambda block: len(block.text))
    lines = [quoted(block.text, 900) for block in (*plans[-1:], *said[-2:])]
    results = {b.tool_call: b for b in blocks if b.type == "tool_result"}
    calls = [block for block in blocks if block.type == "tool_use"][-LAST_CALLS:]
    done = [
        f"{quoted(f'{b.tool} {key_arguments(b)}', 120)} ({_outcome(results, b)})" for b in calls
    ]
    return [f"Last calls: {'; '.join(done)}", *lines] if done else lines


def _outcome(results: Mapping[str | None, Block], use: Block) -> str:
    result = results.get(use.tool_call)
    if result is None:
        return "no result yet"
    if is_rejected(result):
        return "rejected by the user"
    if is_undone(result):
        return "cancelled"
    return "failed" if result.error else "succeeded"


def open_todos(span: Span, people: Iterable[Said]) -> list[str] | None:
    """Return the open items of the newest to-do list; None without a list.

    `UNKNOWN` is the only item if a person wrote after the list was done, here or in the earlier
    summary.
    """
    before = carried(span.previous, "nine").get("pending_tasks", [])
    todo = newest_todo(span.originals, map(unescape, before))
    if todo is None:
        return [UNKNOWN] if span.previous and not before and any(people) else None
    results = [b for b in span.originals if b.type == "tool_result" and not b.error]
    listed = results[todo.calls - 1].position
    asked = any(one.position > listed for one in people)
    return todo.open or ([UNKNOWN] if asked else [])


def _pending(todos: list[str] | None) -> list[str]:
    return ["", *map(quoted, todos)] if todos is not None else []


def _next_step(
    blocks: Sequence[Block], people: Iterable[Said], todos: list[str] | None
) -> list[str]:
    """Quote the request that no agent has answered, else what the agent announced last."""
    said = _said(blocks)
    answered = said[-1].position if said else -1
    asked = [one for one in people if one.position > answered]
    if asked:
        newest = asked[-1]
        return [
            f"Quote: “{_whole(newest.text, 400)}”{newest.answers}{_since(blocks, newest.position)}"
        ]
    if said:
        step = next_step(said[-1].text) or said[-1].text
        return [f"Quote: “{_whole(step, 400)}”{_since(blocks, answered)}"]
    return [quoted(todos[0])] if todos else []


def _since(blocks: Sequence[Block], position: int) -> str:
    """Return how many calls followed, and how the last one ended."""
    calls = [b for b in blocks if b.type == "tool_use" and b.position > position]
    if not calls:
        return ""
    results = {b.tool_call: b for b in blocks if b.type == "tool_result"}
    last = _outcome(results, calls[-1])
    return (
        f" (1 call since, {last})"
        if len(calls) == 1
        else (f" ({len(calls)} calls since, the last one {last})")
    )


def _whole(text: str, width: int) -> str:
    """Return the beginning of a text, cut at a blank, word for word."""
    line = " ".join(text.split())
    cut = line if len(line) <= width else line[:width].rsplit(" ", 1)[0]
    return escape(cut, quote=False)
