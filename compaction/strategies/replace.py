"""Replacement: results that the same call gave anew, and older dashboards, leave the context."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.context import Block
from compaction.edits import Edit
from compaction.files.reading import READING, reads
from compaction.files.sights import STUB
from compaction.hints import hint
from compaction.plan import Mark, Proposal, View
from compaction.repeats import is_dashboard, without_dashboards
from compaction.stubs import entered_short, key_arguments, reference, size, stand_in

STATUS = (
    *READING,
    "browser_console_messages", "browser_network_requests", "browser_snapshot", "browser_tab_list",
    "browser_tabs", "browser_take_screenshot", "get_diagnostics", "get_status",
    "get_terminal_output", "getdiagnostics", "git_diff", "git_log", "git_status",
    "list_processes", "list_sessions", "list_terminals", "read_terminal", "screenshot", "status",
    "taskget", "tasklist", "todo_read", "todoread",
    # programs that shell tools run
    "date", "df", "docker images", "docker logs", "docker ps", "du", "free", "git branch",
    "git remote", "git stash", "hostname", "kubectl get", "lsof", "node -v", "npm ls", "pip list",
    "pip show", "printenv", "ps", "systemctl status", "uname", "which", "whoami",
)  # fmt: skip
"""Tools, and programs with their first argument where it matters, that tell how things stand: view
and list are Dakou's, the rest ours."""


@dataclass(frozen=True, slots=True)
class Replace:
    """What counts as out of date and when it leaves; `help` says what each value does.

    That dashboards and results of the same tool leave: Dakou, who does it at every call (batch 1);
    the least that is saved is about what a stub takes (ours).
    """

    tools: tuple[str, ...] = field(
        default=STATUS,
        metadata={"help": "Tools and programs whose older results leave once they ran again."},
    )
    dashboards: bool = field(
        default=True,
        metadata={
            "help": "Whether user messages lose their <dashboard> once a newer one is there."
        },
    )
    batch: int = field(
        default=1,
        metadata={
            "min": 1,
            "max": 10_000,
            "help": "How many that are out of date gather before they leave together.",
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "help": "Tokens that a stub must save at least, or the text stays.",
        },
    )


MARK: Mark = {"seen": 0, "begin": 0, "due": 0}
"""How many pairs were looked at, the first not dealt with, and how many from there on are due."""


def replace(view: View, parameters: Replace) -> Proposal:
    """Put stubs in place of results that the same call gave anew, and notes for old dashboards.

    The same call is the same tool with the same arguments, for a shell in the same folder. What
    failed stays, and so does what a note on a file rests on. Source: Dakou, whose ContentReplace
    keeps the original beside what is sent.
    """
    pairs = view.repeats.pairs
    due = view.mark["due"]
    due += sum(_counts(view, older, parameters) for older, _ in pairs[view.mark["seen"] :])
    mark: Mark = {"seen": len(pairs), "begin": view.mark["begin"], "due": due}
    if due < parameters.batch:
        return Proposal((), mark if due else {**mark, "begin": len(pairs)})
    place = view.mark["begin"]
    edits: dict[int, Edit] = {}
    while place < len(pairs) and pairs[place][0] < view.guard.hot:
        older, newer = pairs[place]
        place += 1
        if _counts(view, older, parameters) and (edit := _edit(view, older, newer, parameters)):
            edits[older] = edit
    left = sum(_counts(view, older, parameters) for older, _ in pairs[place:])
    made = tuple(edits[position] for position in sorted(edits))
    what = "result" if len(made) == 1 else "results"
    reason = f"{len(made)} {what} of what was asked again"
    return Proposal(made, {**mark, "begin": place, "due": left}, "batch", reason)


def _counts(view: View, position: int, parameters: Replace) -> bool:
    block = view.originals[position]
    if block.type == "tool_result":
        uses = view.guard.groups.uses
        use = uses.get(block.tool_call) if block.tool_call is not None else None
        return reads(use, parameters.tools)
    return parameters.dashboards and is_dashboard(block)


def _edit(view: View, older: int, newer: int, parameters: Replace) -> Edit | None:
    block, now, then = view.originals[older], view.standing.get(older), view.standing.get(newer)
    if now is None or then is None or then.id.startswith(STUB):
        return None
    if now.tokens <= parameters.minimum or not (now.id == block.id or entered_short(now)):
        return None
    if not view.guard.may_replace(block) or any(view.sights.resting(block, view.standing)):
        return None
    text = _text(view, block)
    tokens = view.means.count(text)
    if now.tokens - tokens < parameters.minimum:
        return None
    stub = stand_in(block, text, tokens, "replace", now=now.id)
    step = view.originals[newer].born
    return Edit("replace", (now.id,), stub, f"{now.tokens} tokens, newer since step {step}")


def _text(view: View, block: Block) -> str:
    if block.type != "tool_result":
        note = f"[an older dashboard stood here | ref {reference(block)}]"
        return without_dashboards(block.text, note)
    use = view.guard.groups.uses.get(block.tool_call or "")
    file = block.file or (use.file if use is not None else None)
    parts = [
        f"{block.tool or 'result'} {key_arguments(use)}".strip(),
        "asked again later, the newest result stands there",
        size(block),
        hint(block.text, file.path if file is not None else None),
        f"ref {reference(block)}",
    ]
    return f"[replaced: {' | '.join(part for part in parts if part)}]"
