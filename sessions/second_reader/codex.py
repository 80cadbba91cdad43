"""Codex: the context is the list of response items, and what compactions put in their place."""

from __future__ import annotations

from sessions.second_reader.reread import (
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed_whole,
    dicts,
    objects,
    piece,
    pieces,
    said,
    used,
    within,
)

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_SUMMARIES = ("compaction", "compaction_summary", "context_compaction")
_BY_MODEL = (
    *_CALLS,
    "reasoning",
    "web_search_call",
    "tool_search_call",
    "image_generation_call",
    "file_search_call",
)
_BY_CLIENT = (
    "# AGENTS.md instructions",
    *(
        f"<{name}"
        for name in (
            *("environment_context", "user_instructions", "INSTRUCTIONS", "turn_aborted"),
            *("subagent_notification", "skill", "user_shell_command", "permissions"),
            *("collaboration_mode", "environments", "apps_instructions", "hook_prompt"),
            *("plugins_instructions", "recommended_plugins"),
        )
    ),
)
"""How user messages begin that no person typed: they do not begin a turn."""


def read(data: bytes) -> list[Reread]:
    """Read a rollout, which is one session."""
    reader = _Rollout()
    for line, given in objects(data):
        payload = given.get("payload")
        if isinstance(payload, dict):
            reader.take(line, given.get("type"), payload)
    return [reader.close()]


class _Rollout:
    def __init__(self) -> None:
        self.reread = Reread()
        self.base: list[RereadPiece] = []
        self.items: list[tuple[dict[str, Json], list[RereadPiece]]] = []
        self.open: RereadStep | None = None
        self.totals: Json = None
        self.asked = False
        self.headed = False

    def take(self, line: int, form: Json, payload: dict[str, Json]) -> None:
        """Read a line; what the model says begins a step, a new total of tokens ends it. While the
        log has no totals, the model's next words after something else begin a step, too."""
        if form == "session_meta" and not self.headed:
            self.headed = True
            tools = payload.get("dynamic_tools")
            text = within(payload, "base_instructions", "text") or payload.get("instructions")
            self.base += [_tools(tools, line)] if tools else []
            self.base += [piece("text", text, line)] if isinstance(text, str) and text else []
        elif form == "response_item":
            is_model = _is_model(payload)
            if is_model and self.asked and self.totals is None:
                self._end()
            if is_model and self.open is None:
                self.open = RereadStep(line, self.context)
            if (read := _pieces(payload, line)) is not None:
                self.items.append((payload, read))
                self.asked = not is_model
        elif form == "compacted":
            self._compacted(line, payload)
        elif form == "event_msg":
            self._event(line, payload)

    @property
    def context(self) -> list[RereadPiece]:
        """What is in context now."""
        return [*self.base, *(one for _, read in self.items for one in read)]

    def close(self) -> Reread:
        """The session; a step in progress has no usage."""
        self._end()
        self.reread.end = self.context
        return self.reread

    def _end(self) -> None:
        if self.open is not None:
            self.reread.steps.append(self.open)
        self.open = None

    def _event(self, line: int, payload: dict[str, Json]) -> None:
        form = payload.get("type")
        totals = within(payload, "info", "total_token_usage")
        if form == "turn_aborted":
            self._end()
        elif form == "thread_rolled_back":
            turns = [at for at, (given, _) in enumerate(self.items) if _is_typed(given)]
            many = payload.get("num_turns")
            if isinstance(many, int) and 0 < many <= len(turns):
                del self.items[turns[-many] :]
        elif form == "token_count" and isinstance(totals, dict) and totals != self.totals:
            self.totals = totals
            last = within(payload, "info", "last_token_usage")
            self.open = self.open or RereadStep(line, self.context)
            self.open.billed = billed_whole(
                within(last, "input_tokens"),
                within(last, "cached_input_tokens"),
                within(last, "cache_creation_input_tokens"),
                within(last, "output_tokens"),
            )
            self._end()

    def _compacted(self, line: int, payload: dict[str, Json]) -> None:
        self.reread.compactions += 1
        self.asked = True
        history = payload.get("replacement_history")
        if isinstance(history, list):
            listed = dicts(history)
            self.items = [(one, _pieces(one, line) or pieces([one], line)) for one in listed]
            return
        stays = ("user", "developer", "system")
        self.items = [each for each in self.items if each[0].get("role") in stays]
        if message := payload.get("message"):
            summary = {"type": "message", "role": "", "content": message}
            self.items.append((summary, [piece("text", message, line)]))


def _is_model(given: dict[str, Json]) -> bool:
    return given.get("type") in _BY_MODEL or given.get("role") == "assistant"


def _is_typed(given: dict[str, Json]) -> bool:
    # Compactions repeat prompts, without beginning a turn.
    return given.get("role") == "user" and not said(given.get("content")).lstrip().startswith(
        _BY_CLIENT
    )


def _pieces(given: dict[str, Json], line: int) -> list[RereadPiece] | None:
    form = given.get("type")
    if form in ("message", "agent_message"):
        return [_shown(one) for one in pieces(given.get("content"), line)]
    if form == "reasoning":
        parts = [*dicts(given.get("summary")), *dicts(given.get("content"))]
        return [piece("thinking", "\n\n".join(str(one.get("text") or "") for one in parts), line)]
    if form in _CALLS:
        asked = given.get("action", given.get("arguments"))
        asked = {"input": given["input"]} if "input" in given else asked
        return [used(given.get("name") or "local_shell", asked, line)]
    if form in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        output = given.get("output")
        content = output.get("content", output) if isinstance(output, dict) else output
        return [answered(content, line)]
    if form == "tool_search_output":
        return [_tools(given.get("tools"), line)]
    known = form in _BY_MODEL or form in _SUMMARIES
    return [piece(str(form), "", line)] if known else None


def _shown(one: RereadPiece) -> RereadPiece:
    return one._replace(form="image") if one.form == "input_image" else one


def _tools(tools: Json, line: int) -> RereadPiece:
    return pieces([{"type": "tools", "tools": tools if isinstance(tools, list) else []}], line)[0]
