"""Contexts with their wire blocks, written the way one reads them; and odd ones, drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from compaction.context.blocks import Block, Kind, Role
from compaction.context.wire import WireBlock, encode, kind_of, text_of, type_of
from tests.compaction.dice import Dice


@dataclass
class Wires:
    """Blocks one after another, each message with its wire blocks."""

    blocks: list[Block] = field(default_factory=list)
    wires: dict[str, WireBlock] = field(default_factory=dict)
    messages: int = 0

    def wire_of(self, block: Block) -> WireBlock:
        """What stands at a block's place."""
        return self.wires[block.id]

    def say(
        self, role: Role, *wires: WireBlock, call: str | None = None, kind: Kind | None = None
    ) -> Wires:
        """A message of these blocks."""
        self.messages += 1
        for index, wire in enumerate(wires):
            form = type_of(wire)
            name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(form)
            block = Block(
                id=f"m{self.messages}.{index}",
                position=len(self.blocks),
                message=self.messages,
                born=self.messages,
                turn=1,
                role=role,
                type=form,
                kind=kind or kind_of(wire, role),
                tokens=len(text_of(wire)) // 4,
                chars=len(text_of(wire)),
                sha=f"{len(self.blocks):064x}",
                text=text_of(wire),
                call=call,
                tool_call=str(wire.get(name) or "") or None if name else None,
                tool=str(wire.get("name") or "") or None if form == "tool_use" else None,
            )
            self.blocks.append(block)
            self.wires[block.id] = wire
        return self

    def replaced(self, place: int, wire: WireBlock) -> Wires:
        """The context with one block replaced."""
        old = self.blocks[place]
        new = replace(old, id=f"offload:{old.id}", replaces=old.id, refs=(old.id,))
        self.blocks[place] = new
        self.wires[new.id] = wire
        return self

    @property
    def bytes(self) -> dict[str, bytes]:
        """All wire blocks as stored, to see that nothing changes them."""
        return {id: encode(wire) for id, wire in self.wires.items()}


def text(text: str, **more: Any) -> WireBlock:
    """A text block."""
    return {"type": "text", "text": text, **more}


def thinks(text: str, signature: str | None = "sig") -> WireBlock:
    """A thinking block, signed by default."""
    signed = {} if signature is None else {"signature": signature}
    return {"type": "thinking", "thinking": text, **signed}


def uses(id: str, name: str = "Read", **given: Any) -> WireBlock:
    """A tool call."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def gives(id: str, content: Any = "a result", **more: Any) -> WireBlock:
    """A tool result."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}

IDS = ["t1", "t2", "toolu_01AbC", "call#3.0", "a b/ü", "x" * 70, "", "t1"]
TEXTS = ["hello", " ", "", "ends in blanks \n", "é文", "lone \ud800 half", "\x00", "{}"]
ROLES: list[Role] = ["user", "assistant", "assistant", "user", "tool", "system"]
SOURCES: list[Any] = [
    PNG,
    PDF,
    {"type": "url", "url": "https://example.org/a.png"},
    {"type": "url", "url": "data:image/png;base64,iVBORw0KGgo="},
    {"type": "url", "url": "file:///etc/passwd"},
    {"type": "base64", "media_type": "image/bmp", "data": "Qk0="},
    {"type": "base64", "media_type": "image/png", "data": "<left out>"},
    {"type": "text", "media_type": "text/plain", "data": "plain"},
    {"type": "file", "file_id": "file_1"},
    "nothing",
    None,
]
TOOLS: list[Any] = [
    {"name": "Read", "description": "reads", "input_schema": {"type": "object"}},
    {"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}},
    {"type": "function", "name": "shell", "parameters": None, "strict": True},
    {"type": "custom", "name": "apply patch!", "format": {"type": "grammar"}},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    {"name": "Read", "input_schema": {"type": "array"}, "cache_control": {"type": "ephemeral"}},
    "Bash",
    {"no": "name"},
    7,
]


def odd_contexts() -> st.SearchStrategy[Wires]:
    """Contexts of up to some sixty blocks with everything wrong that can be."""
    return st.binary(max_size=300).map(lambda data: _odd(Dice(data)))


def _odd(dice: Dice) -> Wires:
    made = Wires()
    while dice.left():
        role = ROLES[dice(len(ROLES))]
        call = f"r{dice(6)}" if role == "assistant" and dice(2) else None
        kind: Kind | None = "summary" if dice(20) == 19 else None
        made.say(role, *(_wire(dice) for _ in range(dice(4))), call=call, kind=kind)
        if made.blocks and dice(8) == 7:
            _stub(dice, made)
    return made


def _stub(dice: Dice, made: Wires) -> None:
    place = dice(len(made.blocks))
    wire = made.wires[made.blocks[place].id]
    form = type_of(wire)
    if form == "tool_use":
        made.replaced(place, {**wire, "input": {"input": "[offloaded]"}})
    elif form == "tool_result":
        made.replaced(place, gives(str(wire["tool_use_id"]), "[offloaded]"))


def _wire(dice: Dice) -> WireBlock:
    some = TEXTS[dice(len(TEXTS))]
    form = dice(13)
    if form < 3:
        return text(some, citations=None) if dice(2) else text(some)
    if form < 6:
        given = ({"path": some}, {}, some, None, [1], {"n": float("nan")})[dice(6)]
        name = ("Read", "./run.sh", "", "n" * 80)[dice(4)]
        return {**uses(IDS[dice(len(IDS))], name), "input": given, "caller": {"type": "direct"}}
    if form < 9:
        return _result(dice, some)
    if form == 9:
        return thinks(some, (None, "", "sig", "sig")[dice(4)])
    if form == 10:
        return {"type": ("image", "document")[dice(2)], "source": SOURCES[dice(len(SOURCES))]}
    if form == 11:
        return {"type": "tools", "tools": [TOOLS[dice(len(TOOLS))] for _ in range(dice(5))]}
    return [
        {"type": "redacted_thinking", "data": "enc"},
        {"type": "redacted_thinking"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "other", "value": 7},
        {"type": "document", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}},
    ][dice(5)]


def _result(dice: Dice, some: str) -> WireBlock:
    image = {"type": "image", "source": SOURCES[dice(len(SOURCES))]}
    content: Any = (some, [text(some), image], [image], [], None, {"a": 1}, [some, 7], 3)[dice(8)]
    error = ({}, {"is_error": True}, {"is_error": False}, {"is_error": "yes"})[dice(4)]
    return gives(IDS[dice(len(IDS))], content, **error)
