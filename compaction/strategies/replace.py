"""Replacement: remove results that the same call gave again, and older dashboards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.context.edits import Edit
from compaction.context.hints import hint
from compaction.context.stubs import key_arguments, reference, size, stand_in
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.strategy import Place, Remark, Strategy
from compaction.seen.reading import READING, reads
from compaction.seen.repeats import is_dashboard, without_dashboards
from compaction.seen.sights import STUB

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
"""Tools, and programs with their first argument where it matters, that query a state: view and
list follow Dakou, the rest are our choice."""


@dataclass(frozen=True, slots=True)
class Replace:
    """What counts as out of date, and when it leaves the context.

    Removing dashboards and results of the same tool: Dakou, at every call (batch 1); the minimum
    savings are about the size of a stub (our choice).
    """

    tools: tuple[str, ...] = setting(
        STATUS,
        "Keep only the newest result of",
        "Tools and programs whose older results are replaced once they run again.",
        "Tool results",
        advanced=True,
    )
    dashboards: bool = setting(
        True,
        "Remove older dashboards",
        "Remove the <dashboard> of a user message once there is a newer one.",
        "Tool results",
        advanced=True,
    )
    batch: int = setting(
        1,
        "Replace at once",
        "Outdated results to replace together, to break the cache once for all of them.",
        "Tool results",
        "results",
        between=(1, 10_000),
        tries=(1, 2, 5, 10, 20),
        drawn=range(1, 5),
    )
    minimum: int = setting(
        50,
        "Replace if it saves at least",
        "Keep the text if a stub would save fewer tokens than this.",
        "Tool results",
        "tokens",
        between=(1, 1_000_000),
        advanced=True,
        drawn=range(1, 61),
    )


MARK: Mark = {"seen": 0, "begin": 0, "due": 0}
"""The number of pairs processed, the first one still open, and how many since then are due."""


def replace(view: View, parameters: Replace) -> Proposal:
    """Replace results that the same call gave again by stubs, and old dashboards by notes.

    Calls are the same if tool and arguments are equal, and for a shell also the folder. Failed
    results stay, and so does text that a note on a file relies on. Source: Dakou, whose
    ContentReplace keeps the original next to what is sent.
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
    reason = f"{len(made)} outdated {what}"
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
    if now.tokens <= parameters.minimum or not (now.id == block.id or view.entered_short(now)):
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
        note = f"[an older dashboard was here | ref {reference(block)}]"
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


def _remarks(place: Place, given: Replace) -> Iterator[Remark]:
    if given.batch == 1:
        text = (
            "Each repeated result breaks the cached prefix at the older one. Set it to 5 or more: "
            "one break for all of them (Dakou: 1)."
        )
        yield Remark("batch", text, "note")
    if any(one.name == "dedupe" for one in place.after):
        text = (
            "Removes the older text of a file before dedupe compares the newest reading with it, "
            "so the file is shown in full again. Move it after dedupe."
        )
        yield Remark("", text, "note")


STRATEGY = Strategy(
    name="replace",
    order=50,
    title="Replacement",
    does="Removes results that the same call gave again, and older dashboards.",
    event="offload",
    propose=replace,
    parameters=Replace,
    mark=MARK,
    docs="replacement",
    remarks=_remarks,
    joins=True,
    asks=frozenset({"repeats"}),
)
