"""Codex CLI rollouts (JSONL): `response_item` lines are the context, `event_msg` lines mirror
it."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.codex.history import History
from sessions.importers.codex.items import Item, item_of
from sessions.importers.decoded import Faults, Line, lines
from sessions.importers.importer import Importer
from sessions.importers.joined import by_headers
from sessions.importers.records import (
    Call,
    Compaction,
    Json,
    Log,
    Message,
    Reason,
    Rewind,
    Session,
    Skipped,
)
from sessions.importers.reported import openai_usage
from sessions.importers.wire import mapping, milliseconds, sequence, string, text_block

FORMAT = "codex-rollout"

_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_BESIDE = frozenset({"world_state", "inter_agent_communication_metadata", "ghost_snapshot"})


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file have this format."""
    return any(
        string(given.get("type")) in _TYPES and isinstance(given.get("payload"), dict)
        for given in objects
    )


def read(data: bytes, name: str = "") -> Log:
    """Read a rollout; each line becomes records or is kept as skipped."""
    del name
    reader = _CodexReader()
    for line in lines(data):
        reader.take(line)
    return reader.close()


class _CodexReader:
    """Processes a rollout. A model call is the span between two changes of the token totals.

    The items of a call carry its id from the first one on; its Call record follows when the log
    reports it. A call cut off by the end of the log, or by the user, has items but no Call. Before
    the first totals, an answer after a tool's result or a message is that of a new request.
    """

    def __init__(self) -> None:
        self.log = Log(FORMAT)
        self._faults = Faults("Lines that are not readable JSON")
        self.session = Session("", agent="codex")
        self._history = History()
        self._model = self._effort = ""
        self._number = 1
        self._aborted = 0
        self._began: int | None = None
        self._answered = 0
        self._asked_again = False
        self._totals: Json = None
        self._metas: list[Json] = []
        self._turns: list[int] = []

    def take(self, line: Line) -> None:
        """Process one line."""
        if line.fault:
            self.log.skipped.append(self._faults.line(line))
            return
        given = mapping(line.value)
        payload = given.get("payload")
        form = string(given.get("type"))
        if not isinstance(payload, dict):
            known = form in _TYPES or not isinstance(line.value, dict)
            self._skip(line, form, "malformed" if known else "unknown")
            return
        at = milliseconds(given.get("timestamp"))
        if form == "response_item":
            self._item(line, payload, at)
        elif form == "event_msg":
            self._event(line, payload, at)
        elif form == "compacted":
            self._compacted(line, payload, at)
        elif form == "session_meta":
            self._meta(line, payload, at)
        else:
            self._model = string(payload.get("model")) or self._model
            self._effort = string(payload.get("effort")) or self._effort
            known = form in _TYPES or form in _BESIDE
            self._skip(line, form, "not context" if known else "unknown")

    def close(self) -> Log:
        """Return the log with its session, if there is one."""
        self.log.problems.extend(self._faults.sentences())
        self.session.model = self._model
        return self.log.close([self.session])

    def _skip(self, line: Line, form: str, reason: Reason) -> None:
        self.log.skipped.append(Skipped(line.number, form, reason, line.raw))

    # Context

    def _item(self, line: Line, payload: dict[str, Json], at: int | None) -> None:
        item = item_of(payload)
        if item is None:
            form = string(payload.get("type"))
            reason: Reason = "not context" if form == "configuration_update" else "unknown"
            self._skip(line, f"response_item/{form}", reason)
            return
        if item.role == "assistant":
            if self._totals is None and self._answered and self._asked_again:
                self._called()
            self._began = at if self._began is None else self._began
            self._answered = line.number
        self._asked_again = item.role != "assistant"
        self._write(item, f"line-{line.number}", line.number, at)

    def _called(self) -> None:
        """Write a call whose tokens the log does not tell."""
        self.session.records.append(
            Call(
                call=self._call,
                model=self._model,
                at=self._began,
                line=self._answered,
                settings=self._effort,
            )
        )
        self._next()

    def _next(self) -> None:
        self._number += 1
        self._aborted = self._answered = 0
        self._began = None

    def _write(self, item: Item, key: str, line: int, at: int | None) -> None:
        message = Message(
            item.role,
            item.blocks,
            key=key,
            call=self._call if item.role == "assistant" else None,
            at=at,
            kind=item.kind,
            human=item.human,
            line=line,
        )
        if item.human:
            self._turns.append(len(self._history.standing))
        self._history.add(key, item)
        self.session.records.append(message)

    @property
    def _call(self) -> str:
        # Later calls keep the ids that earlier releases gave them.
        return f"call-{self._number}" + (f".{self._aborted}" if self._aborted else "")

    def _meta(self, line: Line, payload: dict[str, Json], at: int | None) -> None:
        if not self._metas:
            self.session.external_id = _id_of(payload)
            parent = string(payload.get("parent_thread_id"))
            self.session.parent = parent or None
            for name in ("cli_version", "cwd", "originator", "thread_source"):
                if value := string(payload.get(name)):
                    self.session.meta[name] = value
        new = payload not in self._metas
        self._metas.append(payload)
        tools = sequence(payload.get("dynamic_tools"))
        text = string(mapping(payload.get("base_instructions")).get("text"))
        text = text or string(payload.get("instructions"))
        if not new or len(self._metas) > 1 or not (tools or text):
            self._skip(line, "session_meta", "not context")
            return
        if tools:
            blocks = [{"type": "tools", "tools": tools}]
            self._write(Item("system", blocks), "tools", line.number, at)
        if text:
            item = Item("system", [text_block(text)], kind="system")
            self._write(item, "base-instructions", line.number, at)

    # Changes of the context

    def _compacted(self, line: Line, payload: dict[str, Json], at: int | None) -> None:
        replacement = payload.get("replacement_history")
        exact = isinstance(replacement, list)
        if isinstance(replacement, list):
            keep, new = self._history.replace(replacement)
        else:
            keep, new = self._history.summarize(string(payload.get("message")))
        self._turns.clear()
        self._asked_again = True
        key = f"line-{line.number}"
        record = Compaction(keep=keep, exact=exact, at=at, key=key, line=line.number)
        self.session.records.append(record)
        for index, item in enumerate(new):
            # A repeated prompt does not begin a turn.
            self._write(item._replace(human=False), f"{key}.{index}", line.number, at)

    def _rolled_back(self, line: Line, payload: dict[str, Json], at: int | None) -> bool:
        turns = payload.get("num_turns")
        if not isinstance(turns, int) or not 0 < turns <= len(self._turns):
            return False
        dropped = self._history.cut(self._turns[-turns])
        del self._turns[-turns:]
        key = f"line-{line.number}"
        self.session.records.append(Rewind(dropped, at=at, key=key, line=line.number))
        return True

    def _event(self, line: Line, payload: dict[str, Json], at: int | None) -> None:
        form = string(payload.get("type"))
        if form == "token_count" and self._counted(line, mapping(payload.get("info")), at):
            return
        if form == "thread_rolled_back" and self._rolled_back(line, payload, at):
            return
        if form == "turn_aborted" and self._began is not None:
            self._aborted += 1
            self._began, self._answered = None, 0
        if isinstance(window := payload.get("model_context_window"), int):
            self._set_window(window)
        self._skip(line, f"event_msg/{form}", "not context")

    def _set_window(self, window: int) -> None:
        if 0 < window < 10**9:
            self.session.window = window

    def _counted(self, line: Line, info: dict[str, Json], at: int | None) -> bool:
        """Write the call that this count ends. Returns False if the count is a repetition."""
        if isinstance(window := info.get("model_context_window"), int):
            self._set_window(window)
        totals = info.get("total_token_usage")
        if not isinstance(totals, dict) or totals == self._totals:
            return False
        self._totals = totals
        raw = info.get("last_token_usage")
        reported = openai_usage(raw)
        self.session.records.append(
            Call(
                call=self._call,
                model=self._model,
                at=self._began or at,
                usage=reported.usage,
                usage_raw=raw,
                reconciles=reported.reconciles,
                line=line.number,
                settings=self._effort,
            )
        )
        self._next()
        return True


def _id_of(meta: dict[str, Json]) -> str:
    return string(meta.get("id") or meta.get("session_id"))


IMPORTER = Importer(
    name=FORMAT,
    order=30,
    title="Codex",
    files="`rollout-*.jsonl`",
    recognised_by="lines of `type` and `payload`",
    read=read,
    knows_lines=recognises,
    split=lambda data: by_headers(
        data, "session_meta", lambda one: _id_of(mapping(one.get("payload")))
    ),
    folder="~/.codex/sessions",
    rank=2,
)
