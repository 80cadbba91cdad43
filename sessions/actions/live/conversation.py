"""The conversation of a live session: its current messages, and what a batch adds or takes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any

from compaction import tokens
from sessions.actions.live.unnamed_results import name_results
from sessions.actions.masking.incoming import incoming as incoming_masks
from sessions.actions.record.known import (
    KnownMessages,
    by_key,
    by_prefix,
    standing_history,
    stored_tool_calls,
)
from sessions.actions.record.numbering import Numbering
from sessions.actions.record.prepare import (
    Preparation,
    PreparedMessage,
    ToolCall,
    answered_before,
)
from sessions.actions.record.recorded import RecordedRun
from sessions.actions.record.resent import resent_replies
from sessions.importers import records
from sessions.importers.delivered.delivered import Batch
from sessions.models import Run, Session

HEAD = 2
"""Number of messages by which a whole history is recognized."""

Setup = list[tuple[int, str]]
"""Messages outside the conversation: number and digest of each."""


@dataclass(slots=True)
class Memory:
    """State kept between appends, so that none has to read all messages.

    Stored with the recorded run (`fold`). `head` holds the digests of the first two messages of the
    conversation. `setup` holds the current tools, the system prompt sent separately ("system"), and
    system messages before the conversation ("lead"). `visible` is the number of scaled tokens in
    the recorded context.
    """

    head: list[str] = field(default_factory=list)
    setup: dict[str, Setup] = field(default_factory=dict)
    visible: int = 0

    def standing(self, name: str) -> Setup:
        """The current setup with this name."""
        return self.setup.get(name, [])

    @property
    def beside(self) -> list[int]:
        """Numbers of the messages outside the conversation."""
        return [seq for setup in self.setup.values() for seq, _ in setup]


class Incoming:
    """A batch with its messages prepared before the transaction begins.

    Results refer to tool calls stored when there were `stored` messages.
    """

    def __init__(self, session: Session, batch: Batch) -> None:
        self.batch = batch
        self.stored = session.message_count
        preparation = Preparation(
            tokens.counted,
            _calls_before(session, batch),
            live=True,
            masks=incoming_masks(session.team_id),
        )
        self.tools = _one(preparation, batch.tools and [{"type": "tools", "tools": batch.tools}])
        self.system = _one(preparation, batch.system)
        self.messages = preparation.messages(batch.records)
        leading = takewhile(lambda record: _is_lead(record), batch.records)
        self.lead = sum(1 for _ in leading)

    @property
    def setups(self) -> list[tuple[str, list[PreparedMessage]]]:
        """The setups in the batch, by name; an empty one means that there is none."""
        stated = ("tools", self.batch.tools, self.tools), ("system", self.batch.system, self.system)
        return [(name, prepared) for name, said, prepared in stated if said is not None]


def prepare(session: Session, fold: Mapping[str, Any], batch: Batch) -> Incoming:
    """Prepare a batch: count and compress what is probably new, outside any transaction."""
    incoming, memory = Incoming(session, batch), memory_of(session, fold)
    known = known_of(session, memory, incoming)
    new = [one for index, one in incoming.messages.items() if index not in known.stored]
    for name, prepared in incoming.setups:
        standing = {digest for _, digest in memory.standing(name)}
        new += [message for message in prepared if not any(map(message.has_digest, standing))]
    for message in new:
        message.prepare()
    return incoming


def _one(
    preparation: Preparation, blocks: list[dict[str, records.Json]] | None
) -> list[PreparedMessage]:
    return [preparation.message(records.Message("system", blocks))] if blocks else []


def _is_lead(record: records.Record) -> bool:
    return isinstance(record, records.Message) and record.role == "system"


def _calls_before(session: Session, batch: Batch) -> dict[str, ToolCall]:
    """Stored tool calls that the batch answers."""
    asked = answered_before(batch.records)
    if not asked or not session.message_count:
        return {}
    found = stored_tool_calls(session, asked)
    if unknown := [one for one in asked if one not in found]:
        found |= stored_tool_calls(session, name_results(session, batch, unknown))
    return found


def memory_of(session: Session, kept: Mapping[str, Any]) -> Memory:
    """The state stored with the run; for imported sessions it is read once from their rows."""
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
    run, _ = Run.objects.get_or_create(session=session, origin=Run.Origin.RECORDED)
    standing = RecordedRun(session, run).standing()
    memory.visible = sum(session.scaled(one.tokens) for one in standing)
    return memory


def bring_in(new: Numbering, incoming: Incoming) -> Memory:
    """Number the new messages of a batch, setups first; return the new state."""
    session, memory = new.session, memory_of(new.session, new.run.fold)
    known = known_of(session, memory, incoming)
    for name, prepared in incoming.setups:
        _set_up(new, memory, name, prepared)
    lead = _bring_in_lead(new, memory, incoming, known) if incoming.lead else 0
    begun = len(new.fresh)
    messages = incoming.messages
    if lead:
        messages = {index - lead: one for index, one in messages.items() if index >= lead}
    new.take(incoming.batch.records[lead:], messages, _shifted(known, lead) if lead else known)
    if known.gone:
        memory.head = memory.head[: known.shared]
    memory.head = [*memory.head, *(one.message.digest for one in new.fresh[begun : begun + HEAD])]
    memory.head = memory.head[:HEAD]
    came = sum(session.scaled(block.tokens) for _, block, _ in new.blocks)
    memory.visible = max(memory.visible + came - new.tokens_left, 0)
    new.run.fold = asdict(memory)
    return memory


def _bring_in_lead(new: Numbering, memory: Memory, incoming: Incoming, known: KnownMessages) -> int:
    """Process system messages before the conversation; return the number of records."""
    lead = [incoming.messages[index] for index in range(incoming.lead)]
    if known.is_history:
        _set_up(new, memory, "lead", lead)
    elif not memory.head:
        # The conversation is still empty: they join its lead.
        fresh = [one for index, one in enumerate(lead) if index not in known.stored]
        new.known += len(lead) - len(fresh)
        _add(new, memory, "lead", fresh)
    else:
        return 0
    return incoming.lead


def _set_up(new: Numbering, memory: Memory, name: str, prepared: Sequence[PreparedMessage]) -> None:
    """Replace a setup by the batch's: different messages leave, new ones are added."""
    standing = memory.standing(name)
    pairs = zip(standing, prepared, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[1].has_digest(pair[0][1]), pairs))
    new.known += same if name == "lead" else 0
    gone = {seq for seq, _ in standing[same:]}
    # Tools added where there were none change the beginning of the prompt, too.
    if gone or (prepared[same:] and new.session.step_count):
        what = "tools" if name == "tools" else "system"
        said = "list of tools" if what == "tools" else "system prompt"
        reason, key = f"the sender's {said} changed", f"{name}@{new.session.message_count + 1}"
        new.left("setup", what, reason, gone, key)
        memory.setup[name] = standing[:same]
    _add(new, memory, name, prepared[same:])


def _add(new: Numbering, memory: Memory, name: str, prepared: Sequence[PreparedMessage]) -> None:
    taken = by_key(new.session, dict(enumerate(prepared))).taken
    for message in prepared:
        seq = new.take_message(message, taken)
        memory.setup.setdefault(name, []).append((seq, message.digest))


def known_of(session: Session, memory: Memory, incoming: Incoming) -> KnownMessages:
    """Find messages of a batch that are already stored, by key or as the beginning of a history."""
    keyed = KnownMessages()
    if any(one.record.key is not None for one in incoming.messages.values()):
        keyed = by_key(session, incoming.messages)
    history = incoming.batch.history
    if history is None:
        history = _is_whole_history(memory, incoming)
    if not history or not session.message_count:
        return keyed
    stored = standing_history(session, keyed=True, beside=memory.beside)
    rest = {index: one for index, one in incoming.messages.items() if index >= incoming.lead}
    setup = [*incoming.system, *(incoming.messages[index] for index in range(incoming.lead))]
    resent = resent_replies(session, rest.values(), stored, setup)
    known = by_prefix(KnownMessages(taken=keyed.taken, is_history=True), rest, stored, resent)
    known.shared = len(known.stored)
    if known.diverges_at is None and _goes_back(memory, incoming):
        known.gone = {one.seq for one in stored[known.shared :]}
    return known


def _goes_back(memory: Memory, incoming: Incoming) -> bool:
    """Whether a history that contains only stored messages takes back the later ones.

    Without an explicit flag, the batch may also be an old one sent again: require at least two
    messages, all equal to the beginning of the conversation, and at least one without a key.
    """
    sent = list(incoming.messages.values())
    if len(sent) == incoming.lead:
        return False
    if incoming.batch.history:
        return True
    lead = sent[: incoming.lead]
    keys = [one.record.key for one in sent]
    return (
        len(sent) >= HEAD
        and (not lead or _are(lead, [digest for _, digest in memory.standing("lead")]))
        and None in keys
    )


def _are(sent: Sequence[PreparedMessage], digests: Sequence[str]) -> bool:
    return len(sent) == len(digests) and all(
        message.has_digest(digest) for message, digest in zip(sent, digests, strict=True)
    )


def _is_whole_history(memory: Memory, incoming: Incoming) -> bool:
    """Whether a batch begins like the stored conversation, for long enough to exclude
    coincidence."""
    sent = list(incoming.messages.values())
    lead, rest = sent[: incoming.lead], sent[incoming.lead :]
    stored_lead = [digest for _, digest in memory.standing("lead")]
    pairs = zip(memory.head, rest, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[1].has_digest(pair[0]), pairs))
    stored = len(stored_lead) + len(memory.head)
    if not stored or (len(sent) < 2 and stored > 1):
        return False
    if lead and stored_lead:
        # The system prompt may have changed; the first message after it decides.
        return shared >= 1 if memory.head else _are(lead[: len(stored_lead)], stored_lead)
    return shared >= min(HEAD, stored)


def _shifted(known: KnownMessages, by: int) -> KnownMessages:
    """Shift the record numbers down by `by`."""
    at = known.diverges_at
    return KnownMessages(
        stored={index - by: one for index, one in known.stored.items() if index >= by},
        diverges_at=None if at is None else at - by,
        gone=known.gone,
        left=known.left,
        taken=known.taken,
    )
