"""The extractive summarizer: sections written by code, deterministically."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from compaction.context.blocks import Block
from compaction.context.hints import LANGUAGES, LOOK_AT, hint, one_line
from compaction.context.stubs import arguments, key_arguments
from compaction.proposals.plan import Span, SummaryForm
from compaction.seen.todo import items_of
from compaction.summaries.carry import carried
from compaction.summaries.merge import Merged, Trouble, by_weight, merge
from compaction.summaries.shares import MENDED, OPEN, fitted, merged_lines
from compaction.summaries.summary import command, element_key, file_operation, named_by, render

CODED: Mapping[SummaryForm, tuple[str, ...]] = {
    "nine": ("files_and_code", "errors_and_fixes", "all_user_messages", "pending_tasks"),
    "progress": ("file_operations", "commands"),
    "done": ("final_state",),
    "window": (),
}
"""Sections always written by code, from the log: files, failures, people's messages and open to-do
items. A model adds the sentences of `final_state`."""

_WRAPPING = re.compile(r"^(?:Exit code \d+|exit status \d+)\s*$|</?tool_use_error>", re.MULTILINE)


def extractive(span: Span) -> str:
    """Summarize a span without a model.

    Files with their last action, errors with their outcome, commands with their status, user
    messages and open to-do items come from the blocks; current work and the next step quote the
    agent. Earlier summaries of any form are carried over. Each section keeps its share of the
    budget, so that summaries of summaries do not grow.
    """
    merged = _all_sections(span)
    return render(fitted(merged, span.budget), span.form)


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
    ended = _succeeded(span.originals)
    lines = {
        name: merged_lines(name, [_now(line, ended) for line in known.get(name, [])], new)
        for name, new in fresh.items()
    }
    if span.form == "progress":
        for name in ("file_operations", "commands"):
            lines[name] = _keyed(known.get(name, []), lines[name])
    return lines


def _nine(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    said = _texts(blocks, "assistant")
    todos = open_todos(blocks)
    ways = merge(blocks)
    return {
        "primary_request_and_intent": _request(span),
        "key_technical_concepts": _concepts(blocks),
        "files_and_code": _files(ways),
        "errors_and_fixes": _errors(ways),
        "problem_solving": _commands(ways),
        "all_user_messages": [_quote(b.text, 160) for b in _people(span, pictures=True)],
        "pending_tasks": ["", *map(_quote, todos)] if todos is not None else [],
        "current_work": [_quote(said[-1].text, 700)] if said else [],
        "optional_next_step": _next_step(said, todos),
    }


def _progress(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    said = _texts(blocks, "assistant")
    todos = open_todos(blocks)
    ways = merge(blocks)
    plan = ["", *map(_quote, todos)] if todos is not None else _next_step(said, todos)
    return {
        "task_overview": [*_request(span), *(_quote(b.text, 160) for b in _people(span)[1:-1])],
        "steps": _steps(said, ways),
        "current_state": [_quote(said[-1].text, 700)] if said else [],
        "next_plan": plan,
        "file_operations": _files(ways, keys=True),
        "commands": _commands(ways, keys=True),
    }


def _done(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    said = _texts(blocks, "assistant")
    ways = merge(blocks)
    results = [_result_line(b, 120) for b in blocks if b.type == "tool_result" and not b.error]
    return {
        "flow": [*_request(span), *(_quote(b.text, 160) for b in said[:-1])],
        "findings": [*(line for line in results[-4:] if line), *_errors(ways)],
        "final_state": [*_files(ways), *_commands(ways)[-5:]],
        "result": [_quote(said[-1].text, 1_200)] if said else [],
    }


def _request(span: Span) -> list[str]:
    people = _people(span)
    request = [_quote(b.text, 700) for b in people[:1]]
    if len(people) > 1:
        request.append(f"Latest: {_quote(people[-1].text, 400)}")
    return request


def _steps(said: Sequence[Block], ways: Merged) -> list[str]:
    """Return what the agent said it did, and each failure, in order."""
    found = [(block.position, _quote(block.text, 160)) for block in said[:-1]]
    found += [(way.failures[0].position, _trouble(way)) for way in ways.troubles]
    return [line for _, line in sorted(found)]


def _window(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    people = _people(span)
    asked = [b for b in people if "?" in b.text or "？" in b.text]
    ways = merge(blocks)
    decided = [f"asked for: {_quote(b.text, 140)}" for b in people[-4:]]
    decided += [_quote(b.text, 140) for b in _texts(blocks, "assistant")[-4:]]
    failed = [line for line in _errors(ways) if line.endswith(OPEN)]
    return {
        "key_decisions": decided,
        "discoveries": [_result_line(b, 120) for b in blocks if b.type == "tool_result"][-6:],
        "unresolved_questions": [_quote(b.text, 120) for b in asked[-3:]] + failed[-3:],
        "entities_and_relations": [f"{one.path}: {one.action}" for one in ways.files],
    }


def _quote(text: str, width: int = 160) -> str:
    return escape(one_line(text, width), quote=False)


def _result_line(block: Block, width: int) -> str:
    """Return a result on one line."""
    # The text of a failed call is about the failure, not about the file.
    path = block.file.path if block.file is not None and not block.error else None
    return _quote(hint(_WRAPPING.sub("", block.text[:LOOK_AT]).strip(), path), width)


def _texts(blocks: Iterable[Block], kind: str) -> list[Block]:
    return [b for b in blocks if b.kind == kind and b.type == "text" and b.text.strip()]


def _people(span: Span, *, pictures: bool = False) -> list[Block]:
    found = [*_texts(span.originals, "user"), *_texts(span.kept, "user")]
    if pictures:
        found += [b for b in span.originals if b.type == "image" and b.role == "user"]
    return sorted(found, key=lambda block: block.position)


def _concepts(blocks: Iterable[Block]) -> list[str]:
    tools = dict.fromkeys(b.tool for b in blocks if b.type == "tool_use" and b.tool)
    endings = (b.file.path.rsplit(".", 1)[-1].lower() for b in blocks if b.file is not None)
    languages = dict.fromkeys(LANGUAGES[e] for e in endings if e in LANGUAGES)
    return [*languages, *(f"tool {_quote(str(name), 60)}" for name in tools)]


def _files(ways: Merged, *, keys: bool = False) -> list[str]:
    return [
        file_operation(one.path, one.action, one.ref, one.first if keys else None)
        for one in by_weight(ways.files)
    ]


def _errors(ways: Merged) -> list[str]:
    return [_trouble(way) for way in ways.troubles]


def _trouble(way: Trouble) -> str:
    """Describe a failure on one line: each distinct error, the files changed, and the outcome."""
    failed = list(dict.fromkeys(_result_line(block, 140) for block in way.failures))
    parts = [f"{_quote(way.about, 100)}: {failed[0]}", *failed[1:]]
    if way.times > len(failed):
        parts[-1] += f" ({way.times} times)"
    if way.fixes and way.mended:
        parts.append(f"changed {_quote(', '.join(way.fixes), 200)}")
    return " → ".join(parts) + (MENDED if way.mended else OPEN)


def _commands(ways: Merged, *, keys: bool = False) -> list[str]:
    """Return one element per command; read-only programs first, so that they are dropped first."""
    return [
        command(one_line(one.text, 120), one.status, one.times, one.first if keys else None)
        for one in sorted(ways.commands, key=lambda one: not one.looks)
    ]


def _succeeded(blocks: Sequence[Block]) -> set[str]:
    """Return what the last successful calls were about, as failure lines begin with it."""
    uses = {block.tool_call: block for block in blocks if block.type == "tool_use"}
    found: set[str] = set()
    for block in blocks:
        use = uses.get(block.tool_call)
        if block.type == "tool_result" and use is not None:
            about = _quote(f"{use.tool} {key_arguments(use)}".strip(), 100)
            (found.discard if block.error else found.add)(about)
    return found


def _now(line: str, ended: set[str]) -> str:
    """Update a line of an earlier summary: a failure in it may have been fixed since."""
    if line.endswith(OPEN) and line.split(": ", 1)[0] in ended:
        return line.removesuffix(OPEN) + MENDED
    return line


def _keyed(earlier: list[str], lines: list[str]) -> list[str]:
    """Give elements stable keys.

    The key is the earlier summary's, a new number if it had none, otherwise the position at which
    the file or command first occurred.
    """
    known = {named_by(line): element_key(line) for line in earlier}
    taken = {key for line in [*earlier, *lines] if (key := element_key(line)) is not None}
    free = iter(number for number in range(len(taken) + len(lines) + 1) if number not in taken)
    made = []
    for line in lines:
        key = known.get(named_by(line)) if named_by(line) in known else element_key(line)
        made.append(_with_key(line, next(free) if key is None else key))
    return made


def _with_key(line: str, key: int) -> str:
    bare = re.sub(r' key="\w+"', "", line, count=1)
    if bare.startswith("<file_operation"):
        return bare.replace("<file_operation", f'<file_operation key="fileOp_{key}"', 1)
    return bare.replace("<command", f'<command key="cmd_{key}"', 1)


def open_todos(blocks: Iterable[Block]) -> list[str] | None:
    """Return the open items of the newest to-do list in a span; None without a list.

    Accepts lists of objects under `todos` or `plan` (Claude Code, Codex, Gemini CLI) with `content`
    or `step` and `status`, and Markdown checkboxes in a file named todo.md.
    """
    newest: list[str] | None = None
    for block in blocks:
        if block.type != "tool_use" or len(block.text) > 200_000:
            continue
        if '"todos"' in block.text or '"plan"' in block.text or "todo.md" in block.text.lower():
            found = _todo_list(arguments(block) or {})
            newest = found if found is not None else newest
    return newest


def _todo_list(given: dict[str, Any]) -> list[str] | None:
    items = items_of(given)
    if items is not None:
        return [item.text for item in items if not item.done]
    text = given.get("content") or given.get("file_text")
    if isinstance(text, str) and "- [" in text:
        return [line.split("]", 1)[1].strip() for line in text.splitlines() if "- [ ]" in line]
    return None


def _next_step(said: list[Block], todos: list[str] | None) -> list[str]:
    if said:
        lines = [line for line in said[-1].text.splitlines() if line.strip()]
        return [f"Quote: “{_whole(lines[-1], 240)}”"] if lines else []
    return [_quote(todos[0])] if todos else []


def _whole(text: str, width: int) -> str:
    """Return the beginning of a text, cut at a blank, word for word."""
    line = " ".join(text.split())
    cut = line if len(line) <= width else line[:width].rsplit(" ", 1)[0]
    return escape(cut, quote=False)
