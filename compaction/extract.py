"""The extractive summarizer: sections made by code, the same for the same blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from compaction.context import Block
from compaction.groups import failure_key
from compaction.hints import LANGUAGES, LOOK_AT, hint, one_line
from compaction.plan import Span
from compaction.stubs import arguments, key_arguments, reference
from compaction.summary import command, file_operation, parse, render
from compaction.todo import items_of

SHARES = {
    "primary_request_and_intent": 0.13,
    "key_technical_concepts": 0.04,
    "files_and_code": 0.25,
    "errors_and_fixes": 0.13,
    "problem_solving": 0.10,
    "all_user_messages": 0.15,
    "pending_tasks": 0.08,
    "current_work": 0.08,
    "optional_next_step": 0.04,
    "key_decisions": 0.3,
    "discoveries": 0.25,
    "unresolved_questions": 0.2,
    "entities_and_relations": 0.2,
}
"""Which part of the budget a section may take (ours)."""

KEEP_FIRST = frozenset({"primary_request_and_intent", "all_user_messages"})
"""Sections whose oldest line is worth more than the one after it: it states the task."""

BYTES_PER_TOKEN = 2.6
"""Careful: agent logs have 2.8 characters a token (docs/sources.md, Token ratios); 2.6 is ours."""

_WRAPPING = re.compile(r"^(?:Exit code \d+|exit status \d+)\s*$|</?tool_use_error>", re.MULTILINE)
_INDEXES = frozenset({"files_and_code", "entities_and_relations"})

Calls = dict[str | None, Block]

_CHANGES = frozenset({"write", "edit", "delete"})
_SHELL = ("command", "cmd", "script")


def extractive(span: Span) -> str:
    """Summarise a span without a model.

    Files with their last action, errors with their fate, commands with their status, user messages
    and open todos are read off the blocks; current work and the next step quote the agent. What an
    earlier summary of the same form said is carried on; each section holds to its share of the
    budget, so that summaries of summaries do not grow.
    """
    earlier = parse(span.previous, span.form) if span.previous else {}
    lines = _window(span) if span.form == "window" else _nine(span)
    merged = {name: _merge(name, earlier.get(name, []), fresh) for name, fresh in lines.items()}
    sections: dict[str, list[str]] = {}
    left = span.budget * sum(SHARES[name] for name in lines)
    # Files come last and take what the others leave: they are what agents ask for again.
    for name in sorted(lines, key=lambda name: name in _INDEXES):
        share = left if name in _INDEXES else span.budget * SHARES[name]
        sections[name] = _fit(merged[name], share, name in KEEP_FIRST)
        left -= sum(map(_cost, sections[name]))
    return render(sections, span.form)


def _nine(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    said = _texts(blocks, "assistant")
    people = _people(span)
    uses = _calls(blocks)
    request = [_quote(b.text, 700) for b in people[:1]]
    if len(people) > 1:
        request.append(f"Latest: {_quote(people[-1].text, 400)}")
    todos = open_todos(blocks)
    return {
        "primary_request_and_intent": request,
        "key_technical_concepts": _concepts(blocks),
        "files_and_code": _files(blocks),
        "errors_and_fixes": _errors(blocks, uses),
        "problem_solving": _commands(blocks, uses),
        "all_user_messages": [_quote(b.text, 160) for b in people],
        "pending_tasks": ["", *map(_quote, todos)] if todos is not None else [],
        "current_work": [_quote(said[-1].text, 700)] if said else [],
        "optional_next_step": _next_step(said, todos),
    }


def _window(span: Span) -> dict[str, list[str]]:
    blocks = span.originals
    uses = _calls(blocks)
    people = _people(span)
    asked = [b for b in people if "?" in b.text or "？" in b.text]
    decided = [f"asked for: {_quote(b.text, 140)}" for b in people[-4:]]
    decided += [_quote(b.text, 140) for b in _texts(blocks, "assistant")[-4:]]
    failed = [line for line in _errors(blocks, uses) if "not fixed" in line]
    return {
        "key_decisions": decided,
        "discoveries": [_told(b, 120) for b in blocks if b.type == "tool_result"][-6:],
        "unresolved_questions": [_quote(b.text, 120) for b in asked[-3:]] + failed[-3:],
        "entities_and_relations": [
            f"{path}: {action}" for path, (action, _) in _last_actions(blocks).items()
        ],
    }


def _calls(blocks: Iterable[Block]) -> Calls:
    return {block.tool_call: block for block in blocks if block.type == "tool_use"}


def _quote(text: str, width: int = 160) -> str:
    return escape(one_line(text, width), quote=False)


def _told(block: Block, width: int) -> str:
    """What a result says, on one line."""
    # What a failed call says is about the failure, whatever the file was.
    path = block.file.path if block.file is not None and not block.error else None
    return _quote(hint(_WRAPPING.sub("", block.text[:LOOK_AT]).strip(), path), width)


def _texts(blocks: Iterable[Block], kind: str) -> list[Block]:
    return [b for b in blocks if b.kind == kind and b.type == "text" and b.text.strip()]


def _people(span: Span) -> list[Block]:
    found = [*_texts(span.originals, "user"), *_texts(span.kept, "user")]
    return sorted(found, key=lambda block: block.position)


def _concepts(blocks: Iterable[Block]) -> list[str]:
    tools = dict.fromkeys(b.tool for b in blocks if b.type == "tool_use" and b.tool)
    endings = (b.file.path.rsplit(".", 1)[-1].lower() for b in blocks if b.file is not None)
    languages = dict.fromkeys(LANGUAGES[e] for e in endings if e in LANGUAGES)
    return [*languages, *(f"tool {_quote(str(name), 60)}" for name in tools)]


def _last_actions(blocks: Iterable[Block]) -> dict[str, tuple[str, str]]:
    """Last action and reference by path, oldest first; a change outlives later reads."""
    last: dict[str, tuple[str, str]] = {}
    for block in blocks:
        if block.file is None or block.file.action == "list" or block.error:
            continue
        path, action = block.file.path, block.file.action
        earlier = last.pop(path, None)
        if action == "read" and earlier is not None and earlier[0] in _CHANGES:
            last[path] = earlier
        else:
            last[path] = (action, reference(block))
    return last


def _files(blocks: Iterable[Block]) -> list[str]:
    found = _last_actions(blocks).items()
    reads = [file_operation(p, a, r) for p, (a, r) in found if a not in _CHANGES]
    return reads + [file_operation(p, a, r) for p, (a, r) in found if a in _CHANGES]


def _errors(blocks: Iterable[Block], uses: Calls) -> list[str]:
    fate: dict[str, tuple[str, bool]] = {}
    for block in blocks:
        use = uses.get(block.tool_call)
        if block.type != "tool_result" or use is None:
            continue
        key = failure_key(use)
        if block.error:
            about = _quote(f"{use.tool} {key_arguments(use)}", 100)
            fate.pop(key, None)
            fate[key] = (f"{about}: {_told(block, 140)}", False)
        elif key in fate:
            fate[key] = (fate[key][0], True)
    return [f"{line} ({'fixed' if fixed else 'not fixed'})" for line, fixed in fate.values()]


def _commands(blocks: Iterable[Block], uses: Calls) -> list[str]:
    last: dict[str, str] = {}
    for block in blocks:
        use = uses.get(block.tool_call)
        if block.type != "tool_result" or use is None or use.file is not None:
            continue
        given = arguments(use) or {}
        run = next((given[key] for key in _SHELL if isinstance(given.get(key), str)), None)
        if run is not None:
            line = one_line(run, 120)
            last.pop(line, None)
            last[line] = "failed" if block.error else "succeeded"
    return [command(line, status) for line, status in last.items()]


def open_todos(blocks: Iterable[Block]) -> list[str] | None:
    """What the newest todo list of a span leaves open; None where the span has no such list.

    Knows lists of objects under `todos` or `plan` (Claude Code, Codex, Gemini CLI) with `content`
    or `step` and `status`, and Markdown boxes written to a file named todo.md.
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
        return [f"Quote: “{_quote(lines[-1], 240)}”"] if lines else []
    return [_quote(todos[0])] if todos else []


def _merge(name: str, earlier: list[str], fresh: list[str]) -> list[str]:
    """Old lines and new ones; the newer of two lines about the same thing stands."""
    if name == "pending_tasks":
        # An empty first line says that the span has a list of its own, even if all is done.
        return [line for line in fresh if line] if fresh else earlier
    if name in ("current_work", "optional_next_step"):
        return fresh or earlier
    if name == "primary_request_and_intent" and earlier:
        return [earlier[0], *fresh[-1:]] if fresh else earlier
    kept = {_subject(line): line for line in earlier}
    for line in fresh:
        subject = _subject(line)
        if name not in KEEP_FIRST:
            kept.pop(subject, None)
        kept[subject] = line
    return list(kept.values())


def _subject(line: str) -> str:
    for mark in ('" action="', '" status="', " (fixed)", " (not fixed)"):
        if mark in line:
            return line.split(mark, 1)[0]
    return line


def _cost(line: str) -> float:
    return len(line.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN + 1


def _fit(lines: list[str], budget: float, keep_first: bool) -> list[str]:
    """The newest lines that fit into a budget of tokens, after the oldest where it is the task."""
    head = lines[:1] if keep_first else []
    rest = lines[len(head) :]
    left = budget - sum(map(_cost, head))
    kept: list[str] = []
    for line in reversed(rest):
        left -= _cost(line)
        if left < 0:
            break
        kept.append(line)
    return head + kept[::-1]
