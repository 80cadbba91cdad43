"""Stubs: short, stable texts that replace offloaded blocks and say how to read them back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from compaction.context.blocks import Block
from compaction.context.hints import hint, one_line

KEY_ARGUMENTS = (
    "file_path", "path", "notebook_path", "filename", "command", "cmd", "pattern", "query", "url",
    "glob", "description", "prompt", "name", "id",
)  # fmt: skip
"""Arguments that describe a call, most informative first."""

OFFLOADED = "offloaded"
"""The argument of an offloaded call that says what left it."""

KEEP_ARGUMENT = 160
"""Code points up to which an argument of an offloaded call is kept whole."""


def reference(block: Block) -> str:
    """Return the reference that reads an original back: its id and the start of its hash."""
    return f"{block.id}@{block.sha[:8]}"


def digest(text: str) -> str:
    """Return the SHA-256 of a replacement's text, the key of its stored bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def key_arguments(use: Block | None) -> str:
    """Return the main arguments of a call on one line; empty if it has none."""
    if use is None:
        return ""
    if use.file is not None:
        lines = f":{use.file.start}-{use.file.end or ''}" if use.file.start else ""
        return f"{use.file.path}{lines}"
    given = arguments(use)
    if given is None:
        return one_line(use.text, 100)
    values = [given[key] for key in KEY_ARGUMENTS if isinstance(given.get(key), (str, int))][:2]
    if not values:
        values = [value for value in given.values() if isinstance(value, (str, int))][:2]
    return one_line(" ".join(map(str, values)), 100)


def arguments(use: Block) -> dict[str, Any] | None:
    """Parse the input of a tool call; None if it is not a JSON object."""
    try:
        given = json.loads(use.text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def result_stub(block: Block, use: Block | None, names: str = "", brief: bool = False) -> str:
    """Build the stub of a tool result: tool, key arguments, size, hint or names, reference.

    A `brief` stub omits the tool and its arguments, because the call right before it shows them,
    and has no hint.
    """
    tool = block.tool or (use.tool if use is not None else None) or "result"
    file = block.file or (use.file if use is not None else None)
    if brief:
        parts = ["" if use is not None else tool, _lines(block), names]
    else:
        # What a failed call answers is not the file that it names.
        path = None if file is None or block.error else file.path
        about = names or hint(block.text, path)
        parts = [f"{tool} {key_arguments(use)}".strip(), size(block), about]
    parts.append(f"ref {reference(block)}")
    return f"[offloaded: {' | '.join(part for part in parts if part)}]"


def reading_stub(block: Block, kept: str) -> str:
    """Build the stub of a file that was read, above the lines of it that stay."""
    return f"[offloaded: {_lines(block)}, except those below | ref {reference(block)}]\n{kept}"


def _lines(block: Block) -> str:
    lines = block.text.count("\n") + 1
    return f"{lines} lines" if lines > 1 else size(block).partition(",")[0]


def size(block: Block) -> str:
    """Describe the length of a text; for an image or document, its tokens."""
    if block.text.startswith(("[image", "[document")):
        return f"{block.tokens} tokens"
    return f"{block.chars} chars, {block.text.count(chr(10)) + 1} lines"


def input_stub(block: Block, names: str = "", brief: bool = False) -> str:
    """Build the stub of a tool input: its JSON without long values, which one note names.

    It remains a JSON object, because providers accept nothing else as input of a call. No stub
    stands where a value stood, so that none can be taken for it and written again. The note quotes
    the beginning of an argument that describes the call, half as much of it if `brief`.
    """
    given = arguments(block)
    width = KEEP_ARGUMENT // (4 if brief else 2)
    kept: dict[str, Any] = {}
    gone: list[str] = []
    for key, value in ({"input": block.text} if given is None else given).items():
        text = value if isinstance(value, str) else _compact(value)
        if not isinstance(value, (str, dict, list)) or len(text) <= KEEP_ARGUMENT:
            kept[key] = value
        else:
            gone.append(f"{key}: {one_line(text, width)}" if key in KEY_ARGUMENTS else key)
    parts = [", ".join(gone), f"{block.chars} chars", names, f"ref {reference(block)}"]
    kept[OFFLOADED] = f"[offloaded: {' | '.join(part for part in parts if part)}]"
    return _compact(kept)


# Built once: json.dumps builds a new encoder for each call with other than its defaults.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def said_stub(block: Block, names: str = "") -> str:
    """Build the stub of an assistant text: size, beginning, names, reference."""
    parts = (f"{block.chars} chars", one_line(block.text, KEEP_ARGUMENT // 4), names)
    described = " | ".join(part for part in parts if part)
    return f"[offloaded: {described} | ref {reference(block)}]"


def stand_in(
    block: Block,
    text: str,
    tokens: int,
    strategy: str,
    *,
    now: str | None = None,
    refs: tuple[str, ...] = (),
) -> Block:
    """Build the replacement of a block: same position, role and call pair, new text.

    A picture or document becomes text, as a cache that depends on pictures has to see it leave.
    `now` is the id of the block currently at that position, if not the original; `refs` are the ids
    of all originals the text covers, if more than this block.
    """
    return replace(
        block,
        type="text" if block.type in ("image", "document") else block.type,
        id=f"{strategy}:{block.id}",
        text=text,
        tokens=tokens,
        chars=len(text),
        sha=digest(text),
        replaces=now or block.id,
        refs=refs or block.refs or (block.id,),
    )
