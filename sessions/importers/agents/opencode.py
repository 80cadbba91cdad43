"""Sessions of opencode as `opencode export` writes them (JSON)."""

from __future__ import annotations

from compaction.context.blocks import Kind
from compaction.context.session import MOST_TOKENS, Usage
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Compaction, Json, Log, Message, Skipped
from sessions.importers.reported import Reported, pi_usage
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string, text_block

FORMAT = "opencode"

_BESIDE = frozenset({"step-start", "step-finish", "patch", "snapshot", "agent", "retry", "file"})
"""Parts that the model never sees. A file's text follows as a synthetic part."""


def recognises(value: Json) -> bool:
    """Whether a document is an exported session."""
    given = mapping(value)
    first = mapping((sequence(given.get("messages")) or [None])[0])
    return isinstance(given.get("info"), dict) and "parts" in first and "info" in first


def read(data: bytes, name: str = "") -> Log:
    """Read an export; parts that the model never sees are skipped."""
    given = mapping(document(data, "an opencode export"))
    info = mapping(given.get("info"))
    writer = ArraySession("opencode")
    for index, item in enumerate(map(mapping, sequence(given.get("messages"))), start=1):
        about = mapping(item.get("info"))
        parts = [mapping(part) for part in sequence(item.get("parts"))]
        at = milliseconds(mapping(about.get("time")).get("created"))
        if about.get("role") == "assistant":
            _answer(writer, about, parts, (index, at))
        elif about.get("role") == "user":
            _prompt(writer, parts, (index, at))
        else:
            writer.no_message(index)
        for part in parts:
            if (form := string(part.get("type"))) in _BESIDE:
                writer.skipped.append(Skipped(index, form, "not context"))
    log = writer.log(FORMAT, {"id": info.get("id"), "title": info.get("title")}, name)
    log.sessions[0].parent = string(info.get("parentID")) or None
    return log


def _prompt(
    writer: ArraySession, parts: list[dict[str, Json]], when: tuple[int, int | None]
) -> None:
    index, at = when
    if any(part.get("type") == "compaction" for part in parts):
        writer.session.records.append(Compaction(at=at, key=f"compaction-{index}", line=index))
        return
    texts = [part for part in parts if part.get("type") == "text" and not part.get("ignored")]
    blocks = [text_block(string(part.get("text"))) for part in texts if part.get("text")]
    images = [part for part in parts if string(part.get("mime")).startswith("image/")]
    blocks += [
        {"type": "image", "source": {"type": "url", "url": string(part.get("url"))}}
        for part in images
    ]
    human = any(not part.get("synthetic") for part in texts) or bool(images)
    writer.message(Message("user", blocks, at=at, human=human and bool(blocks), line=index))


def _answer(
    writer: ArraySession,
    about: dict[str, Json],
    parts: list[dict[str, Json]],
    when: tuple[int, int | None],
) -> None:
    index, at = when
    blocks: list[Block] = []
    results: list[Block] = []
    for place, part in enumerate(parts):
        form, text = string(part.get("type")), string(part.get("text"))
        if form == "text" and text:
            blocks.append(text_block(text))
        elif form == "reasoning" and text:
            blocks.append({"type": "thinking", "thinking": text})
        elif form == "tool":
            state = mapping(part.get("state"))
            called = string(part.get("callID")) or f"call-{index}.{place}"
            used = {"type": "tool_use", "id": called, "name": string(part.get("tool"))}
            blocks.append({**used, "input": mapping(state.get("input"))})
            if string(state.get("status")) in {"completed", "error"}:
                results.append(_result(state, called))
    raw = about.get("tokens")
    model = string(about.get("modelID"))
    # A summary stands in place of everything before; its call is billed like others.
    kind: Kind | None = "summary" if about.get("summary") is True else None
    message = Message("assistant", blocks, at=at, kind=kind, line=index)
    writer.response(message, _usage(mapping(raw)), model=model, raw=raw)
    if results:
        writer.message(Message("tool", results, at=at, line=index))


def _result(state: dict[str, Json], called: str) -> Block:
    error = state.get("status") == "error"
    cleared = mapping(state.get("time")).get("compacted") is not None
    content = string(state.get("error" if error else "output"))
    # opencode's own pruning: from then on the model reads only this.
    content = "[Old tool result content cleared]" if cleared else content
    return {"type": "tool_result", "tool_use_id": called, "content": content, "is_error": error}


def _usage(raw: dict[str, Json]) -> Reported:
    """Tokens in pi's form: the input excludes the cache; reasoning is beside the output."""
    cache = mapping(raw.get("cache"))
    counts = {
        "input": raw.get("input"),
        "cacheRead": cache.get("read"),
        "cacheWrite": cache.get("write"),
        "output": raw.get("output"),
    }
    thought = raw.get("reasoning")
    usage, _ = pi_usage(counts)
    if usage is None or not isinstance(thought, int) or not 0 <= thought <= MOST_TOKENS:
        return Reported(usage, reconciles=True)
    usage = Usage(
        uncached=usage.uncached,
        cache_read=usage.cache_read,
        cache_write_5m=usage.cache_write_5m,
        output=usage.output + thought,
        reasoning=thought,
    )
    total = raw.get("total")
    return Reported(usage, not isinstance(total, int) or total == usage.prompt + usage.output)


IMPORTER = Importer(
    name=FORMAT,
    order=57,
    title="opencode",
    files="written by `opencode export`",
    recognised_by="`info` next to messages with `info` and `parts`",
    read=read,
    knows_document=recognises,
    rank=6,
)
