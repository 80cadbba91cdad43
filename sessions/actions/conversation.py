"""The conversation of a live session: what stands in it, and what a batch adds or takes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any

from compaction.context import FileRef
from sessions.actions.intake import Intake
from sessions.actions.known import CHUNK, Known, by_key, by_prefix, standing_history
from sessions.actions.prepare import (
    Count,
    Preparation,
    PreparedMessage,
    ToolCall,
    answered_before,
    column,
)
from sessions.actions.recorded import visible_tokens
from sessions.importers import records
from sessions.importers.delivered import Delivery
from sessions.models import Block, Session

HEAD = 2
"""Messages from which a whole history is recognised."""

Setup = list[tuple[int, str]]
"""Messages that stand beside the conversation: number and digest of each."""


@dataclass(slots=True)
class Memory:
    """What is remembered from one append to the next, so that none looks at all that is stored.

    It is kept with the recorded run (`fold`). `head` are digests of the first standing messages of
    the conversation, two at most. `setup` are the standing tools, the system prompt that was sent
    apart ("system"), and system messages before the conversation ("lead"). `visible` are the scaled
    tokens that stand in the recorded context.
    """

    head: list[str] = field(default_factory=list)
    setup: dict[str, Setup] = field(default_factory=dict)
    visible: int = 0

    def standing(self, name: str) -> Setup:
        """The standing setup of this name."""
        return self.setup.get(name, [])

    @property
    def beside(self) -> list[int]:
        """Numbers of the messages that are no part of the conversation."""
        return [seq for setup in self.setup.values() for seq, _ in setup]


class Incoming:
    """A batch with its messages prepared; made before the transaction begins.

    Results learn of tool calls that were stored when `stored` messages were.
    """

    def __init__(self, session: Session, batch: Delivery, count: Count) -> None:
        self.batch = batch
        self.stored = session.message_count
        preparation = Preparation(count, _calls_before(session, batch), live=True)
        self.tools = _one(preparation, batch.tools and [{"type": "tools", "tools": batch.tools}])
        self.system = _one(preparation, batch.system)
        self.messages = preparation.messages(batch.records)
        leading = takewhile(lambda record: _is_lead(record), batch.records)
        self.lead = sum(1 for _ in leading)

    @property
    def setups(self) -> list[tuple[str, list[PreparedMessage]]]:
        """The setups that the batch states, by name; an empty one says that there is none."""
        stated = ("tools", self.batch.tools, self.tools), ("system", self.batch.system, self.system)
        return [(name, prepared) for name, said, prepared in stated if said is not None]

    def prepare_new(self, memory: Memory, known: Known) -> None:
        """Count and compress what is likely to be new, where no transaction waits for it."""
        for index, message in self.messages.items():
            if index not in known.stored:
                message.prepare()
        for name, prepared in self.setups:
            standing = {digest for _, digest in memory.standing(name)}
            for message in prepared:
                if message.digest not in standing:
                    message.prepare()


def _one(
    preparation: Preparation, blocks: list[dict[str, records.Json]] | None
) -> list[PreparedMessage]:
    return [preparation.message(records.Message("system", blocks))] if blocks else []


def _is_lead(record: records.Record) -> bool:
    return isinstance(record, records.Message) and record.role == "system"


def _calls_before(session: Session, batch: Delivery) -> dict[str, ToolCall]:
    """Stored tool calls that the batch answers."""
    found: dict[str, ToolCall] = {}
    if not session.message_count:
        return found
    ids = {column(one, 200): one for one in answered_before(batch.records)}
    wanted = list(ids)
    for start in range(0, len(wanted), CHUNK):
        rows = session.blocks.filter(type="tool_use", tool_call__in=wanted[start : start + CHUNK])
        for row in rows.order_by("position"):
            found[ids[row.tool_call]] = ToolCall(row.tool, row.preview, _file(row))
    return found


def _file(row: Block) -> FileRef | None:
    if not row.file_path:
        return None
    action: Any = row.file_action
    return FileRef(row.file_path, action, row.file_start, row.file_end)


def memory_of(session: Session, kept: Mapping[str, Any]) -> Memory:
    """What was kept with the run; of a session that was imported, read from its rows once."""
    if kept or not session.message_count:
        return Memory(**kept)
    history = standing_history(session, keyed=True)
    kinds = dict(session.blocks.filter(index=0).values_list("message__seq", "kind"))
    memory = Memory()
    for stored in takewhile(lambda one: kinds.get(one.seq) in ("tools", "system"), history):
        name = "tools" if kinds[stored.seq] == "tools" else "lead"
        memory.setup.setdefault(name, []).append((stored.seq, stored.digest))
    beside = set(memory.beside)
    memory.head = [one.digest for one in history if one.seq not in beside][:HEAD]
    memory.visible = visible_tokens(session)
    return memory


class Conversation:
    """Brings a batch into the intake of a live session."""

    def __init__(self, intake: Intake, memory: Memory) -> None:
        self.intake, self.session, self.memory = intake, intake.session, memory

    def take(self, incoming: Incoming) -> None:
        """Take in setups, then the messages that are not known, and what is said of calls."""
        known = known_of(self.session, self.memory, incoming)
        for name, prepared in incoming.setups:
            self._set_up(name, prepared)
        lead = self._take_lead(incoming, known)
        begun = len(self.intake.fresh)
        self.intake.take(
            incoming.batch.records[lead:],
            {index - lead: one for index, one in incoming.messages.items() if index >= lead},
            _shifted(known, lead),
        )
        self._remember(known, begun)

    def _take_lead(self, incoming: Incoming, known: Known) -> int:
        """System messages before the conversation; how many records they were."""
        memory, lead = self.memory, [incoming.messages[index] for index in range(incoming.lead)]
        if known.is_history and lead:
            self._set_up("lead", lead)
        elif lead and not memory.head:
            # Nothing was said yet: they join those that lead it.
            fresh = [one for index, one in enumerate(lead) if index not in known.stored]
            self.intake.known += len(lead) - len(fresh)
            self._add("lead", fresh)
        else:
            return 0
        return incoming.lead

    def _set_up(self, name: str, prepared: Sequence[PreparedMessage]) -> None:
        """Bring a setup to what the batch says: what differs leaves, what is new is added."""
        standing = self.memory.standing(name)
        pairs = zip(standing, prepared, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0][1] == pair[1].digest, pairs))
        self.intake.known += same if name == "lead" else 0
        gone = {seq for seq, _ in standing[same:]}
        # Tools that come where none were change the beginning of the prompt as well.
        if gone or (prepared[same:] and self.session.step_count):
            what = "tools" if name == "tools" else "system"
            self.intake.left(
                "setup",
                what,
                "the sender's list of tools changed"
                if what == "tools"
                else "the sender's system prompt changed",
                gone,
                f"{name}@{self.session.message_count + 1}",
            )
            self.memory.setup[name] = standing[:same]
        self._add(name, prepared[same:])

    def _add(self, name: str, prepared: Sequence[PreparedMessage]) -> None:
        taken = by_key(self.session, dict(enumerate(prepared))).taken
        for message in prepared:
            seq = self.intake.take_message(message, taken)
            self.memory.setup.setdefault(name, []).append((seq, message.digest))

    def _remember(self, known: Known, begun: int) -> None:
        memory, intake = self.memory, self.intake
        if known.gone:
            memory.head = memory.head[: known.shared]
        new = [one.message.digest for one in intake.fresh[begun : begun + HEAD]]
        memory.head = [*memory.head, *new][:HEAD]
        scaled = self.session.scaled
        came = sum(scaled(block.tokens) for one in intake.fresh for block in one.blocks)
        memory.visible = max(memory.visible + came - intake.tokens_left, 0)
        intake.recorded.run.fold = asdict(memory)


def known_of(session: Session, memory: Memory, incoming: Incoming) -> Known:
    """Which messages of a batch are stored: by their keys, or as the beginning of a history."""
    keyed = by_key(session, incoming.messages)
    history = incoming.batch.history
    if history is None:
        history = _is_whole_history(memory, incoming)
    if not history or not session.message_count:
        return keyed
    stored = standing_history(session, keyed=True, beside=memory.beside)
    rest = {index: one for index, one in incoming.messages.items() if index >= incoming.lead}
    known = by_prefix(Known(taken=keyed.taken, is_history=True), rest, stored)
    known.shared = len(known.stored)
    if known.diverges_at is None and _goes_back(memory, incoming):
        known.gone = {one.seq for one in stored[known.shared :]}
    return known


def _goes_back(memory: Memory, incoming: Incoming) -> bool:
    """Whether a history of nothing but stored messages takes back what was stored after them.

    A batch that does not say so may as well be an old one that was sent again: it must have two
    messages, all as they stand from the beginning, and one at least that no id tells from others.
    """
    digests = [one.digest for one in incoming.messages.values()]
    if len(digests) == incoming.lead:
        return False
    if incoming.batch.history:
        return True
    lead = digests[: incoming.lead]
    keys = [one.record.key for one in incoming.messages.values()]
    return (
        len(digests) >= HEAD
        and lead in ([], [digest for _, digest in memory.standing("lead")])
        and None in keys
    )


def _is_whole_history(memory: Memory, incoming: Incoming) -> bool:
    """Whether a batch begins as the stored conversation does, far enough not to be chance."""
    digests = [one.digest for one in incoming.messages.values()]
    lead, rest = digests[: incoming.lead], digests[incoming.lead :]
    stored_lead = [digest for _, digest in memory.standing("lead")]
    pairs = zip(memory.head, rest, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    stored = len(stored_lead) + len(memory.head)
    if not stored or (len(digests) < 2 and stored > 1):
        return False
    if lead and stored_lead:
        # A system prompt may have changed; the first words after it tell.
        return shared >= 1 if memory.head else lead[: len(stored_lead)] == stored_lead
    return shared >= min(HEAD, stored)


def _shifted(known: Known, by: int) -> Known:
    """The same of records from number `by` on."""
    at = known.diverges_at
    return Known(
        stored={index - by: one for index, one in known.stored.items() if index >= by},
        diverges_at=None if at is None else at - by,
        gone=known.gone,
        taken=known.taken,
    )
