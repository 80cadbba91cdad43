"""Format detection by content; other files are refused with a helpful sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sessions.importers import IMPORTERS, NotALog, counts, detect, parse
from sessions.importers.decoded import MAX_DEPTH

SAMPLES = Path(__file__).parent / "samples"

FORMATS = {path: path.parent.name for path in sorted(SAMPLES.glob("*/*"))}
"""Folders of samples, named after formats."""
USER = {"role": "user", "content": "Go."}


def test_every_format_has_a_sample_and_every_sample_a_format() -> None:
    assert set(FORMATS.values()) == set(IMPORTERS)


@pytest.mark.parametrize(
    ("path", "expected"), FORMATS.items(), ids=lambda it: str(it).rpartition("/")[2]
)
def test_the_content_tells_the_format(path: Path, expected: str) -> None:
    data = path.read_bytes()
    assert detect(data, "anything.txt") == parse(data).format == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([USER], "openai-messages"),
        ({"messages": [USER]}, "openai-messages"),
        ({"messages": [USER], "system": "Be brief."}, "anthropic-messages"),
        ({"request": {"messages": [USER], "system": "Be brief."}}, "anthropic-messages"),
        ([USER, {"role": "assistant", "content": [{"type": "thinking"}]}], "anthropic-messages"),
        ([USER, {"role": "tool", "content": "x"}], "openai-messages"),
        ({"messages": []}, None),
        ({"messages": [{"content": "no role"}]}, None),
        ({"messages": [{"role": "wizard"}]}, None),
        ({"history": [USER]}, None),
        ([{"type": "user", "text": "x"}], None),
        ([1, 2], None),
        ({}, None),
        (7, None),
    ],
)
def test_documents(value: Any, expected: str | None) -> None:
    assert detect(json.dumps(value).encode()) == expected


def test_prose_with_example_lines_is_no_log() -> None:
    example = (SAMPLES / "codex-rollout" / "codex.jsonl").read_text().splitlines()[0]
    assert detect(f"# Notes\n\nA line looks so:\n{example}\nand so on.\n".encode()) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\xef\xbb\xbf", "no agent log|neither"),
        (gzip.compress(b"x" * 99, mtime=0)[:20], "compressed"),
        (b"\x7fELF\x00\x01\x02", "binary"),
        (b"SQLite format 3\x00" + bytes(80), "SQLite database.*goose session export"),
        (b'{"messages": [{"User": {"content": []}}], "title": "a"}', "a thread of Zed; not read"),
        (b'{"workspaceDirectory": "/a", "history": []}', "a session of Continue; not read"),
        (b"# A heading\n\nand text", "neither JSON nor JSONL"),
        (b'{"a": 1}', "not a known agent log"),
        (b'[{"role": "user", "content": "cut o', "neither JSON nor JSONL"),
        (b"[" * 100_000, "neither JSON nor JSONL"),
        (b"9" * 10_000, "not a known agent log"),
    ],
)
def test_refusals_say_what_was_found(data: bytes, said: str) -> None:
    with pytest.raises(NotALog, match=said):
        parse(data)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200, 5_000, 100_000])
def test_deep_nesting_costs_a_line_not_the_log(depth: int) -> None:
    good = json.dumps(
        {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "a"}}
    )
    log = parse(f'{good}\n{{"a": {"[" * depth}{"]" * depth}}}\n{good}\n'.encode())
    assert [item.reason for item in log.skipped] == ["malformed", "not context"]
    assert counts(log)["messages"] == 1


def test_a_long_line_is_read() -> None:
    content = "tide " * 250_000
    log = parse(json.dumps([{"role": "user", "content": content}]).encode())
    assert log.sessions[0].records[0].blocks == [{"type": "text", "text": content}]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (r'"a\u0000b"', "a\ufffdb"),
        (r'"a\ud800b"', "a\ufffdb"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud800"', "\\ud800"),
    ],
)
def test_text_that_nothing_can_store_is_replaced(text: str, kept: str) -> None:
    log = parse(f'[{{"role": "user", "content": {text}}}]'.encode())
    assert log.sessions[0].records[0].blocks[0]["text"] == kept  # type: ignore[union-attr]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "1" * 40])
def test_numbers_that_nothing_can_store_become_text(number: str) -> None:
    block = f'{{"type": "other", "value": {number}}}'
    log = parse(f'[{{"role": "user", "content": [{block}]}}]'.encode())
    assert log.sessions[0].records[0].blocks[0]["value"] == number  # type: ignore[union-attr]
