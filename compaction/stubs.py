"""What stands in a context for a block that left it: short, stable, and enough to read it back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from compaction.context import Block
from compaction.hints import hint, one_line

KEY_ARGUMENTS = (
    "file_path", "path", "notebook_path", "filename", "command", "cmd", "pattern", "query", "url",
    "glob", "description", "prompt", "name", "id",
)  # fmt: skip
"""Arguments that say what a call was about, most telling first."""

KEEP_ARGUMENT = 160
"""Code points up to which an argument of an offloaded call stays whole."""

BRIEF = 80
"""Code points of the hint in a brief stub."""

AT_ENTRY = ("dedupe:", "outline:", "externalise:", "shard:")
"""How ids begin of what strategies put in place of an original at its arrival."""


def reference(block: Block) -> str:
    """The path by which the original is read back: its id, and the head of its hash as a check."""
    return f"{block.id}@{block.sha[:8]}"


def digest(text: str) -> str:
    """The SHA-256 of a replacement's text, by which its bytes are stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def key_arguments(use: Block | None) -> str:
    """The telling arguments of a call on one line; empty where there are none."""
    if use is None:
        return ""
    if use.file is not None:
        lines = f":{use.file.start}-{use.file.end or ''}" if use.file.start else ""
        return f"{use.file.path}{lines}"
    given = arguments(use)
    if given is None:
        return one_line(use.text, 100)
    told = [given[key] for key in KEY_ARGUMENTS if isinstance(given.get(key), (str, int))][:2]
    if not told:
        told = [value for value in given.values() if isinstance(value, (str, int))][:2]
    return one_line(" ".join(map(str, told)), 100)


def arguments(use: Block) -> dict[str, Any] | None:
    """The input of a tool call, or None where it is no JSON object."""
    try:
        given = json.loads(use.text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def result_stub(block: Block, use: Block | None, names: str = "", brief: bool = False) -> str:
    """The stub of a tool result: tool, key arguments, size, hint or names, reference.

    A `brief` one leaves the call to the call itself, which stands right before it, and says of the
    rest less.
    """
    tool = block.tool or (use.tool if use is not None else None) or "result"
    file = block.file or (use.file if use is not None else None)
    about = names or hint(block.text, file.path if file is not None else None)
    if brief:
        parts = ["" if use is not None else tool, _lines(block), names or one_line(about, BRIEF)]
    else:
        parts = [f"{tool} {key_arguments(use)}".strip(), size(block), about]
    parts.append(f"ref {reference(block)}")
    return f"[offloaded: {' | '.join(part for part in parts if part)}]"


def _lines(block: Block) -> str:
    lines = block.text.count("\n") + 1
    return f"{lines} lines" if lines > 1 else size(block).partition(",")[0]


def size(block: Block) -> str:
    """How long a text was; of a picture, which is a word in it, what it took."""
    if block.text.startswith(("[image", "[document")):
        return f"{block.tokens} tokens"
    return f"{block.chars} chars, {block.text.count(chr(10)) + 1} lines"


def input_stub(block: Block, names: str = "", brief: bool = False) -> str:
    """The stub of a tool input: its JSON, with long values cut and one reference among them.

    It stays a JSON object, since providers accept nothing else as the input of a call. A `brief`
    one says how the first long value begins, and of others only that they were long.
    """
    given = arguments(block)
    beginning, rest = (KEEP_ARGUMENT // 4, 1) if brief else (KEEP_ARGUMENT // 2, KEEP_ARGUMENT // 4)
    about = f"{block.chars} chars, {names} |" if names else f"{block.chars} chars,"
    mark = f" [offloaded: {about} ref {reference(block)}]"
    if given is None:
        given, short = {}, {"input": mark.lstrip()}
    else:
        short = dict(given)
    for key, value in given.items():
        text = value if isinstance(value, str) else _compact(value)
        if isinstance(value, (str, dict, list)) and len(text) > KEEP_ARGUMENT:
            # What begins alike, as old and new text do, need not be told twice.
            short[key] = one_line(text, beginning if mark else rest) + mark
            mark = ""
    return _compact(short)


# Made once: json.dumps makes an encoder anew for each call that is not its default.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def said_stub(block: Block, names: str = "") -> str:
    """The stub of what an agent said: size, how it began, names, reference."""
    parts = (f"{block.chars} chars", one_line(block.text, KEEP_ARGUMENT // 4), names)
    return _words_stub(block, parts)


def thought_stub(block: Block, names: str = "") -> str:
    """The stub of what an agent thought: size, names, reference."""
    return _words_stub(block, ("thinking", f"{block.chars} chars", names))


def _words_stub(block: Block, parts: Iterable[str]) -> str:
    told = " | ".join(part for part in parts if part)
    return f"[offloaded: {told} | ref {reference(block)}]"


def entered_short(block: Block) -> bool:
    """Whether a block stands for an original that no model had seen: it rewrote nothing."""
    return block.id.startswith(AT_ENTRY)


def stand_in(
    block: Block,
    text: str,
    tokens: int,
    strategy: str,
    *,
    now: str | None = None,
    refs: tuple[str, ...] = (),
) -> Block:
    """The block that stands in place of another: same place, role and pair, other text.

    `now` is the id of what stands there in the block's stead, if anything does; `refs` are the ids
    of all that it tells of, where that is more than the block.
    """
    return replace(
        block,
        id=f"{strategy}:{block.id}",
        text=text,
        tokens=tokens,
        chars=len(text),
        sha=digest(text),
        replaces=now or block.id,
        refs=refs or block.refs or (block.id,),
    )
