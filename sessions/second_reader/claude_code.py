"""Claude Code: the context of a call is found by walking up from it to the root of the tree."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    billed,
    dicts,
    objects,
    piece,
    pieces,
    within,
)


@dataclass(slots=True, eq=False)
class _Node:
    """A line of the conversation, `place` lines after its agent's first."""

    place: int
    line: int
    given: dict[str, Json]
    pieces: list[RereadPiece]
    uuid: str
    response: str = ""
    asks: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    @property
    def is_loose(self) -> bool:
        """Whether the client put it beside another line."""
        return self.given["type"] == "attachment" or self.given.get("isMeta") is True


def read(data: bytes) -> list[Reread]:
    """Read a file: the main agent and those beside it, in order of their first lines."""
    parents: dict[str, Json] = {}
    agents: dict[str, _Agent] = {}
    chains: dict[str, str] = {}
    seen: set[str] = set()
    for number, given in objects(data):
        uuid = str(given.get("uuid") or f"line-{number}")
        parents.setdefault(uuid, given.get("parentUuid"))
        if given.get("type") not in ("user", "assistant", "attachment", "system") or uuid in seen:
            continue
        seen.add(uuid)
        name = str(given.get("agentId") or "")
        if not name and given.get("isSidechain") is True:
            name = chains.get(str(given.get("parentUuid"))) or uuid
        chains[uuid] = name
        agents.setdefault(name, _Agent(parents)).take(number, given, uuid)
    return [agent.close() for agent in agents.values()]


class _Agent:
    def __init__(self, parents: dict[str, Json]) -> None:
        self.parents = parents
        self.nodes: list[_Node] = []
        self.by_uuid: dict[str, _Node] = {}
        self.firsts: dict[str, _Node] = {}
        self.usage: dict[str, Billed | None] = {}
        self.reread = Reread()
        self.cleared: dict[str, int] = {}
        self.is_tree = True

    def take(self, line: int, given: dict[str, Json], uuid: str) -> None:
        """Read a line; the first one of a response is a step."""
        node = _Node(len(self.nodes), line, given, [], uuid)
        content = within(given, "message", "content")
        if given["type"] == "system":
            listed = within(given, "microcompactMetadata", "compactedToolIds") or []
            self.cleared |= {str(one): len(self.nodes) for one in listed}
            if given.get("subtype") != "compact_boundary":
                return
            self.reread.compactions += 1
        elif given["type"] == "attachment":
            node.pieces = _attached(given.get("attachment"), line)
        elif given["type"] == "assistant":
            self._response(node, content)
        elif given.get("isVisibleInTranscriptOnly") is not True or given.get("isCompactSummary"):
            node.pieces = pieces(content, line)
            node.answers = [str(one.get("tool_use_id")) for one in _of(content, "tool_result")]
        self.nodes.append(node)
        self.by_uuid.setdefault(uuid, node)

    def close(self) -> Reread:
        """The session."""
        above = {self.parents.get(node.uuid) for node in self.nodes}
        results = [node.uuid for node in self.nodes if node.answers]
        # Some programs that write this format attach every response to the prompt.
        self.is_tree = not results or any(one in above for one in results)
        for response, first in self.firsts.items():
            context = self._context(first, self.nodes[: first.place])
            self.reread.steps.append(RereadStep(first.line, context, self.usage[response]))
        if self.nodes:
            self.reread.end = self._context(self.nodes[-1], self.nodes)
        return self.reread

    def _response(self, node: _Node, content: Json) -> None:
        stated = within(node.given, "message", "id") or node.given.get("requestId")
        node.response = str(stated or f"line-{node.line}")
        is_error = node.given.get("isApiErrorMessage") is True
        by_client = within(node.given, "message", "model") == "<synthetic>"
        if not is_error:
            node.pieces = pieces(content, node.line)
            node.asks = [str(one.get("id")) for one in _of(content, "tool_use")]
        if by_client and not is_error:
            return
        self.firsts.setdefault(node.response, node)
        usage = None if by_client else usage_of_response(within(node.given, "message", "usage"))
        self.usage[node.response] = usage or self.usage.get(node.response)

    # The tree

    def _context(self, tip: _Node, before: list[_Node]) -> list[RereadPiece]:
        """What is in context at a line: its ancestors, and what belongs to them."""
        chain = self._ancestors(tip)
        start = next((n.place for n in reversed(chain) if n.given["type"] == "system"), -1)
        kept = self._preserved(self.nodes[start]) if start >= 0 else set()
        inside = {node.uuid for node in chain}
        responses = {n.response for n in chain} - {""}
        asked: set[str] = set()
        found: list[RereadPiece] = []
        for node in before:
            if node.place < start and node.uuid not in kept:
                continue
            if not self._is_inside(node, inside, responses, asked) and node.uuid not in kept:
                continue
            inside.add(node.uuid)
            asked |= set(node.asks)
            found += [self._shown(node, at, len(before)) for at in range(len(node.pieces))]
        return found

    def _is_inside(
        self, node: _Node, inside: set[str], responses: set[str], asked: set[str]
    ) -> bool:
        # Parallel tool calls fork the tree at every line of a response.
        if node.uuid in inside or node.response in responses or not self.is_tree:
            return True
        if node.answers:
            return bool(asked & set(node.answers))
        return node.is_loose and self._holder(node) in inside

    def _holder(self, node: _Node) -> str:
        parent = self._known_parent(node.uuid)
        return parent.uuid if parent else ""

    def _ancestors(self, tip: _Node) -> list[_Node]:
        chain: list[_Node] = []
        node: _Node | None = tip
        while node is not None:
            chain.append(node)
            if node.given.get("subtype") == "compact_boundary":
                break
            parent = self._known_parent(node.uuid)
            if parent is None and self.parents.get(node.uuid) is not None and node.place:
                # Its parent is not in the file: it follows what precedes it there.
                parent = self.nodes[node.place - 1]
            node = parent if parent is None or parent.place < node.place else None
        return chain[::-1]

    def _known_parent(self, uuid: str) -> _Node | None:
        """The nearest ancestor that is a line of this agent's conversation."""
        passed: set[str] = set()
        above = self.parents.get(uuid)
        while isinstance(above, str) and above not in self.by_uuid and above not in passed:
            passed.add(above)
            above = self.parents.get(above)
        return self.by_uuid.get(above) if isinstance(above, str) else None

    def _preserved(self, boundary: _Node) -> set[str]:
        given = boundary.given.get("compactMetadata")
        listed = within(given, "preservedMessages", "uuids")
        if isinstance(listed, list):
            return set(map(str, listed))
        head = self.by_uuid.get(str(within(given, "preservedSegment", "headUuid")))
        tail = self.by_uuid.get(str(within(given, "preservedSegment", "tailUuid")))
        if head is None or tail is None:
            return set()
        return {node.uuid for node in self.nodes[head.place : tail.place + 1]}

    def _shown(self, node: _Node, at: int, until: int) -> RereadPiece:
        one = node.pieces[at]
        if one.form != "tool_result" or not self.cleared:
            return one
        results = [n for n, each in enumerate(node.pieces) if each.form == "tool_result"]
        cleared = self.cleared.get(node.answers[results.index(at)])
        return one if cleared is None or cleared > until else piece("cleared", "", node.line)


def _of(content: Json, form: str) -> list[dict[str, Json]]:
    return [one for one in dicts(content) if one.get("type") == form]


def usage_of_response(usage: Json) -> Billed | None:
    """Usage of a response; of one that took several requests, the largest prompt of its model."""
    asked = dicts(within(usage, "iterations"))
    if len(asked) < 2:
        return _request(usage)
    every = [_request(one) or Billed(0, 0, 0, 0) for one in asked]
    answers = [at for at, one in enumerate(asked) if one.get("type") != "advisor_message"]
    model = asked[answers[-1]].get("model") if answers else None
    own = [every[at] for at in answers if asked[at].get("model") == model]
    most = max(own, key=lambda one: one.prompt, default=None)
    if most is None:
        return None
    output = sum(one.output for one in own)
    whole = sum(one.prompt + one.output for one in every)
    return most._replace(output=output, beside=whole - most.prompt - output)


def _request(usage: Json) -> Billed | None:
    return billed(
        within(usage, "input_tokens"),
        within(usage, "cache_read_input_tokens"),
        within(usage, "cache_creation_input_tokens"),
        within(usage, "output_tokens"),
    )


_ATTACHED = {
    "agent_listing_delta": ("addedLines",),
    "critical_system_reminder": ("content",),
    "date_change": ("newDate",),
    "deferred_tools_delta": ("addedLines",),
    "directory": ("content",),
    "edited_text_file": ("snippet",),
    "hook_additional_context": ("content",),
    "hook_blocking_error": ("blockingError", "blockingError"),
    "hook_success": ("content",),
    "invoked_skills": ("skills",),
    "mcp_instructions_delta": ("addedBlocks",),
    "nested_memory": ("content", "content"),
    "plan_file_reference": ("planContent",),
    "relevant_memories": ("memories",),
    "selected_lines_in_ide": ("content",),
    "skill_listing": ("content",),
    "task_reminder": ("content",),
    "todo_reminder": ("content",),
    "total_tokens_reminder": ("text",),
}
"""Attachments that the model reads, and where their text is."""


def _attached(given: Json, line: int) -> list[RereadPiece]:
    form = within(given, "type")
    if form == "queued_command":
        return pieces(within(given, "prompt"), line)
    if form == "hook_success" and given.get("hookEvent") not in (
        "SessionStart",
        "UserPromptSubmit",
    ):
        return []
    if form == "file":
        text = _read(within(given, "content", "file", "content"))
        text = text or _read(within(given, "content", "content"))
    elif form in _ATTACHED:
        text = _read(within(given, *_ATTACHED[form]))
    else:
        return []
    return [piece("text", text, line)] if text.strip() else []


def _read(value: Json) -> str:
    if isinstance(value, list):
        return "\n".join(map(_read, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else ""
