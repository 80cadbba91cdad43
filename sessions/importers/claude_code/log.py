"""Claude Code session files (JSONL), including sub-agent files and inline side chains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessions.importers.claude_code.agent import Agent
from sessions.importers.claude_code.entry import LogEntry
from sessions.importers.claude_code.joined import by_session
from sessions.importers.claude_code.tree import Parents
from sessions.importers.decoded import Faults, Line, lines
from sessions.importers.importer import Importer
from sessions.importers.naming import name_by_file, stem_of
from sessions.importers.records import Json, Log, Reason, Session, Skipped
from sessions.importers.wire import blocks_of, mapping, sequence, string, text_of

FORMAT = "claude-code"

_SPEECH = frozenset({"user", "assistant"})
_CONVERSATION = frozenset({"user", "assistant", "system", "attachment"})
_BESIDE = frozenset(
    {
        "agent-name",
        "ai-title",
        "atis-latch",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "frame-link",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "tag",
    }
)
"""Types of lines that the model never sees."""

_SPAWNERS = frozenset({"Task", "Agent"})


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file have this format."""
    return any(_is_ours(given) for given in objects)


def _is_ours(given: dict[str, Json]) -> bool:
    form = string(given.get("type"))
    if form in _SPEECH and "sessionId" in given:
        return isinstance(given.get("message"), dict)
    if form == "summary":
        return "leafUuid" in given
    if form == "file-history-snapshot":
        return "snapshot" in given and "messageId" in given
    if form in {"system", "attachment", "progress"}:
        return "parentUuid" in given and "sessionId" in given
    return form in _BESIDE and "sessionId" in given


def read(data: bytes, name: str = "") -> Log:
    """Read a file; each line becomes records or is kept as skipped."""
    reader = _ClaudeCodeReader()
    for line in lines(data):
        reader.take(line)
    return reader.close(name)


class _ClaudeCodeReader:
    """Passes each line to the agent it belongs to; `None` is the main agent."""

    def __init__(self) -> None:
        self.log = Log(FORMAT)
        self._faults = Faults("Lines that are not readable JSON")
        self._agents: dict[str | None, Agent] = {}
        self._parents: Parents = {}
        self._agent_of: dict[str, str] = {}
        self._seen: dict[str, bytes] = {}
        self._session_ids: dict[str, None] = {}
        self._prompts: dict[str, list[str]] = {}
        self._spawned: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._repeats = 0

    def take(self, line: Line) -> None:
        """Process one line."""
        if line.fault:
            self.log.skipped.append(self._faults.line(line))
            return
        if not isinstance(line.value, dict):
            self._skip(line, "", "malformed")
            return
        given = line.value
        form = string(given.get("type"))
        if (session_id := string(given.get("sessionId"))) and form in _CONVERSATION:
            self._session_ids.setdefault(session_id)
        if form not in _CONVERSATION:
            self._beside(line, given, form)
        elif self._is_repeat(line, given):
            self._repeats += 1
            self._skip(line, f"repeated {form}", "not context")
        else:
            self._converse(line, given, form)

    def close(self, name: str) -> Log:
        """Name the sessions and return the log."""
        self.log.problems.extend(self._faults.sentences())
        main_id, *former = self._main_ids(name)
        for key, agent in self._agents.items():
            agent.close()
            self._name(agent.session, key, main_id, former)
            self.log.problems.extend(agent.problems)
            self.log.sessions.append(agent.session)
        if self._repeats:
            self.log.problems.append(
                f"Repeated lines, as in resumed sessions: {self._repeats}; each is counted once."
            )
        if len(self._session_ids) > 1:
            self.log.problems.append(
                f"The file contains lines of {len(self._session_ids)} session ids; all were"
                f" imported as session {main_id}."
            )
        return self.log.close(())

    # Lines outside the conversation

    def _beside(self, line: Line, given: dict[str, Json], form: str) -> None:
        self._know(given)
        if form == "progress":
            data = mapping(given.get("data"))
            call, agent_id = given.get("parentToolUseID"), data.get("agentId")
            if isinstance(call, str) and isinstance(agent_id, str):
                self._spawned.setdefault(agent_id, call)
        elif form == "custom-title":
            self._titles["custom"] = string(given.get("customTitle"))
        elif form == "ai-title":
            self._titles["ai"] = string(given.get("aiTitle") or given.get("title"))
        elif form == "summary" and string(given.get("leafUuid")) in self._parents:
            # Summaries of other sessions are in the same file; this one refers to a line of this
            # session.
            self._titles["summary"] = string(given.get("summary"))
        self._skip(line, form, "not context" if form in _BESIDE else "unknown")

    def _skip(self, line: Line, form: str, reason: Reason) -> None:
        self.log.skipped.append(Skipped(line.number, form, reason, line.raw))

    def _is_repeat(self, line: Line, given: dict[str, Json]) -> bool:
        uuid = string(given.get("uuid"))
        if not uuid:
            return False
        if uuid in self._seen:
            return self._seen[uuid] == line.raw or given.get("type") in _SPEECH
        self._seen[uuid] = line.raw
        return False

    def _know(self, given: dict[str, Json]) -> None:
        uuid, parent = given.get("uuid"), given.get("parentUuid")
        if isinstance(uuid, str) and uuid not in self._parents:
            self._parents[uuid] = parent if isinstance(parent, str) else None

    # Conversation

    def _converse(self, line: Line, given: dict[str, Json], form: str) -> None:
        self._know(given)
        key = self._agent_key(given)
        if key not in self._agents:
            self._agents[key] = Agent(self._parents, side=key is not None)
        agent = self._agents[key]
        entry = LogEntry(line.number, form, given)
        skipped = agent.take(entry)
        if skipped is not None:
            self._skip(line, skipped.type, skipped.reason)
            return
        if form == "assistant":
            self._note_spawns(given)
        elif form == "user":
            self._note_agent(given)
            if key is not None and agent.session.parent_call is None:
                self._tie(agent, key, given)

    def _agent_key(self, given: dict[str, Json]) -> str | None:
        uuid = string(given.get("uuid"))
        agent_id = string(given.get("agentId"))
        if agent_id:
            key = f"agent-{agent_id}"
        elif given.get("isSidechain") is True:
            parent = string(given.get("parentUuid"))
            key = self._agent_of.get(parent) or uuid or "side"
        else:
            return None
        if uuid:
            self._agent_of[uuid] = key
        return key

    def _note_spawns(self, given: dict[str, Json]) -> None:
        for block in blocks_of(mapping(given.get("message")).get("content")):
            prompt = mapping(block.get("input")).get("prompt")
            if string(block.get("name")) in _SPAWNERS and isinstance(prompt, str):
                self._prompts.setdefault(prompt, []).append(string(block.get("id")))

    def _note_agent(self, given: dict[str, Json]) -> None:
        agent_id = mapping(given.get("toolUseResult")).get("agentId")
        if not isinstance(agent_id, str):
            return
        for block in sequence(mapping(given.get("message")).get("content")):
            if mapping(block).get("type") == "tool_result":
                self._spawned[agent_id] = string(mapping(block).get("tool_use_id"))

    def _tie(self, agent: Agent, key: str, given: dict[str, Json]) -> None:
        prompt = text_of(blocks_of(mapping(given.get("message")).get("content")))
        waiting = self._prompts.get(prompt)
        call = self._spawned.get(key.removeprefix("agent-"))
        if call is None and waiting:
            call = waiting.pop(0)
        agent.session.parent_call = call or None

    # Names

    def _main_ids(self, name: str) -> tuple[str, ...]:
        """The id of the main session, and those that earlier releases gave it."""
        stem = stem_of(name)
        if stem in self._session_ids:
            return (stem,)
        if self._session_ids:
            return (next(iter(self._session_ids)),)
        first = self._agents.get(None) or next(iter(self._agents.values()), None)
        named = Session("", records=first.session.records if first else [])
        name_by_file(named, name, FORMAT)
        return (named.external_id, *named.former_ids)

    def _name(self, session: Session, key: str | None, main_id: str, former: Sequence[str]) -> None:
        if key is not None:
            session.external_id = f"{main_id}/{key}"
            session.former_ids = tuple(f"{one}/{key}" for one in former)
            session.parent = main_id
            spawned = self._spawned.get(key.removeprefix("agent-"))
            session.parent_call = session.parent_call or spawned
            return
        session.external_id, session.former_ids = main_id, tuple(former)
        titles = (self._titles.get(kind, "") for kind in ("custom", "ai", "summary"))
        session.title = next((title for title in titles if title), "")
        if self._spawned:
            session.meta["spawned"] = {
                f"{main_id}/agent-{agent_id}": call for agent_id, call in self._spawned.items()
            }


IMPORTER = Importer(
    name=FORMAT,
    order=20,
    title="Claude Code",
    files="session and `agent-*.jsonl` files",
    recognised_by="lines with `sessionId` and a wire message, or its side lines",
    read=read,
    knows_lines=recognises,
    split=lambda data: by_session(data, _CONVERSATION),
    folder="~/.claude/projects",
    rank=1,
)
