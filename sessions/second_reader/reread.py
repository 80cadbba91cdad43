"""What a second reader gives: the context of every model call, piece by piece."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = Any


class RereadPiece(NamedTuple):
    """A block as the model reads it: its form, a digest of its text, and how the text begins.

    `line` is where the log has it (from 1, 0 if unknown); it does not count when pieces are
    compared by `same`.
    """

    form: str
    digest: str
    begins: str
    chars: int
    line: int

    @property
    def same(self) -> tuple[str, str]:
        """What equal pieces have in common."""
        return self.form, self.digest


class Billed(NamedTuple):
    """Tokens of one model call as reported: uncached, read from and written to the cache, and
    output; `beside` is the sum of what the response took beside its largest prompt."""

    uncached: int
    cache_read: int
    cache_write: int
    output: int
    beside: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


@dataclass(slots=True)
class RereadStep:
    """A model call: the line where it begins, what was in context, and its usage if reported."""

    line: int
    context: list[RereadPiece]
    billed: Billed | None = None


@dataclass(slots=True)
class Reread:
    """One agent's session; `end` is the context after the last line, `compactions` their number."""

    steps: list[RereadStep] = field(default_factory=list)
    end: list[RereadPiece] = field(default_factory=list)
    compactions: int = 0


def piece(form: str, text: str, line: int = 0) -> RereadPiece:
    """A piece of a text; characters that no store accepts count as the replacement character."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\x00", "\ufffd")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return RereadPiece(form, digest, " ".join(text[:200].split())[:60], len(text), line)


def used(name: Json, given: Json, line: int = 0) -> RereadPiece:
    """The call of a tool; arguments in JSON text are read."""
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except ValueError:
            value = None
        given = value if isinstance(value, dict) else {"arguments": given}
    return piece("tool_use", f"{name or ''} {plain(given)}", line)


def answered(content: Json, line: int = 0) -> RereadPiece:
    """The result of a tool: the texts in its content, one per line."""
    return piece("tool_result", said(content), line)


def said(content: Json) -> str:
    """The texts of a content, one per line; media are named by their type."""
    if isinstance(content, list):
        return "\n".join(said(part) for part in content)
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else f"[{content.get('type', '')}]"
    return content if isinstance(content, str) else "" if content is None else plain(content)


def pieces(content: Json, line: int = 0) -> list[RereadPiece]:
    """The pieces of a content in Anthropic's form, or in that of the store."""
    if isinstance(content, str):
        return [piece("text", content, line)] if content else []
    listed = content if isinstance(content, list) else [] if content is None else [content]
    return [_piece_of(block, line) for block in listed]


def _piece_of(block: Json, line: int) -> RereadPiece:
    if not isinstance(block, dict):
        return piece("text", said(block), line)
    match block.get("type"):
        case "text" | "input_text" | "output_text" if isinstance(block.get("text"), str):
            return piece("text", block["text"], line)
        case "thinking" | "redacted_thinking":
            return piece("thinking", block.get("thinking") or "", line)
        case "tool_use":
            return used(block.get("name"), block.get("input"), line)
        case "tool_result":
            return answered(block.get("content"), line)
        case "tools":
            return piece("tools", plain(block.get("tools")), line)
        case form:
            return piece(str(form), "", line)


def plain(value: Json) -> str:
    """JSON of a value, with sorted keys; numbers that no column holds as text."""
    return json.dumps(_storable(value), sort_keys=True, ensure_ascii=False)


def _storable(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _storable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_storable(one) for one in value]
    return str(value) if isinstance(value, int) and len(str(value)) > 18 else value


def objects(data: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
    """The objects of a JSONL file with their line numbers; other lines are passed over."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield number, value


def within(value: Json, *path: str | int) -> Json:
    """What is at a path of keys and places; None if there is nothing."""
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and -1 <= key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def dicts(value: Json) -> list[dict[str, Json]]:
    """The items of a list, those that are no objects as empty ones."""
    listed = value if isinstance(value, list) else []
    return [one if isinstance(one, dict) else {} for one in listed]


def billed(uncached: Json, read: Json, written: Json, output: Json) -> Billed | None:
    """Usage from counts, any of them missing; None if all are 0."""
    found = Billed(*(_count(one) for one in (uncached, read, written, output)))
    return found if any(found) else None


def billed_whole(prompt: Json, read: Json, written: Json, output: Json) -> Billed | None:
    """Usage of counts where the prompt includes what was read from and written to the cache."""
    rest = max(_count(prompt) - _count(read) - _count(written), 0)
    return billed(rest, read, written, output)


def largest(*counts: Json) -> int:
    """The largest of counts that say the same, some of them missing."""
    return max(map(_count, counts), default=0)


def _count(value: Json) -> int:
    return value if type(value) is int and 0 <= value <= 10**12 else 0
