"""Properties of all importers for all files, including broken ones."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.importers import IMPORTERS, NotALog, detect, parse
from sessions.importers.records import Log, Session

SAMPLES = Path(__file__).parent / "samples"
LINES = sorted(SAMPLES.rglob("*.jsonl"))
DOCUMENTS = sorted([*SAMPLES.rglob("*.json"), *SAMPLES.rglob("*.traj")])
TEXTS = sorted([*SAMPLES.rglob("*.md"), *SAMPLES.rglob("*.txt")])
ALL = [*LINES, *DOCUMENTS]
GROWING = [path for path in LINES if path.stem != "contextlab-export"]
"""Logs that agents append to; an export is written once."""
CALM = settings(max_examples=25)

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    1e308,
    "",
    "x",
    "\x00",
    "\ud800",
    "9999-99-99",
    [],
    [[]],
    {},
    {"type": []},
    [None],
    [1, "a", {"type": {}}],
    float("nan"),
    float("inf"),
]


def by_name(path: Path) -> str:
    return path.name


def records_of(log: Log) -> dict[str, Session]:
    return {session.external_id: session for session in log.sessions}


def assert_storable(log: Log) -> None:
    """Everything can be written as JSON in UTF-8 without NaN, which databases demand."""
    for session in log.sessions:
        json.dumps(session.meta, allow_nan=False).encode()
        for record in session.records:
            values = {name: getattr(record, name) for name in record.__slots__}
            values["usage"] = None
            text = json.dumps(values, allow_nan=False, ensure_ascii=False)
            assert "\x00" not in json.loads(json.dumps(text))
            text.encode()


def assert_log_or_refusal(data: bytes, name: str = "log") -> Log | None:
    """The log, or None if the file is refused; other errors fail the test."""
    try:
        log = parse(data, name)
    except NotALog as refusal:
        assert str(refusal).endswith(".")
        return None
    assert_storable(log)
    assert parse(data, name) == log
    return log


def assert_lines_accounted(log: Log, data: bytes) -> None:
    pieces = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    filled = {n for n, piece in enumerate(pieces, start=1) if piece.strip()}
    recorded = {record.line for s in log.sessions for record in s.records}
    skipped = [item.line for item in log.skipped]
    assert recorded | set(skipped) == filled
    assert not recorded & set(skipped)
    assert len(skipped) == len(set(skipped))


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value that can be given another value: (container, key)."""
    found: list[tuple[Any, Any]] = []
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    for key in keys:
        found.append((value, key))
        found.extend(spots(value[key]))
    return found


@st.composite
def cut_and_pasted(draw: st.DrawFn, data: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 300)))
        data = data[:start] + draw(st.binary(max_size=8)) + data[end:]
    return data


@st.composite
def with_odd_values(draw: st.DrawFn, data: bytes, *, by_line: bool) -> bytes:
    parts = data.splitlines() if by_line else [data]
    values = [json.loads(part) for part in parts]
    for _ in range(draw(st.integers(1, 4))):
        container, key = draw(st.sampled_from(spots(values)))
        container[key] = deepcopy(draw(st.sampled_from(ODD)))
    return b"\n".join(json.dumps(value).encode() for value in values)


@given(st.binary(max_size=400))
@CALM
def test_any_bytes_give_a_log_or_a_refusal(data: bytes) -> None:
    assert_log_or_refusal(data)


@given(
    st.recursive(
        st.sampled_from(ODD[:-2]),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "role", "content", "messages", "message", "payload", "history"]
                ),
                x,
            )
        ),
    )
)
@CALM
def test_any_json_gives_a_log_or_a_refusal(value: Any) -> None:
    assert_log_or_refusal(json.dumps(value).encode())


@pytest.mark.parametrize("path", [*ALL, *TEXTS], ids=by_name)
@given(st.data())
@CALM
def test_damaged_bytes_raise_nothing_else(path: Path, data: st.DataObject) -> None:
    damaged = data.draw(cut_and_pasted(path.read_bytes()))
    log = assert_log_or_refusal(damaged)
    if log is not None and log.format in {"claude-code", "codex-rollout"}:
        assert_lines_accounted(log, damaged)


@pytest.mark.parametrize("path", ALL, ids=by_name)
@given(st.data())
@CALM
def test_odd_values_raise_nothing_else(path: Path, data: st.DataObject) -> None:
    by_line = path in LINES
    damaged = data.draw(with_odd_values(path.read_bytes(), by_line=by_line))
    assert_log_or_refusal(damaged)
    known = detect(path.read_bytes())
    assert known is not None
    try:
        log = IMPORTERS[known].read(damaged, path.name)
    except NotALog:
        return
    assert_storable(log)
    if by_line:
        assert_lines_accounted(log, damaged)


@pytest.mark.parametrize("path", LINES, ids=by_name)
@given(st.data())
@CALM
def test_lines_in_any_order_and_number_are_accounted(path: Path, data: st.DataObject) -> None:
    lines = path.read_bytes().splitlines()
    mixed = b"\n".join(data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=40)))
    log = assert_log_or_refusal(mixed)
    # One conversation alone is a document, whose items are counted in place of lines.
    if log is not None and log.format == path.parent.name:
        assert_lines_accounted(log, mixed)


@pytest.mark.parametrize("path", GROWING, ids=by_name)
def test_every_shorter_log_begins_the_longer_one(path: Path) -> None:
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    whole = records_of(parse(data, path.name))
    for count in range(1, len(lines)):
        part = parse(b"".join(lines[:count]), path.name)
        for name, session in records_of(part).items():
            assert session.records == whole[name].records[: len(session.records)]


@pytest.mark.parametrize("path", GROWING, ids=by_name)
@given(st.data())
@CALM
def test_a_log_cut_anywhere_begins_the_whole_one(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    end = data.draw(st.integers(len(whole) // 4, len(whole) - 1))
    part = assert_log_or_refusal(whole[:end], path.name)
    if part is None:
        return
    complete = records_of(parse(whole, path.name))
    for name, session in records_of(part).items():
        assert session.records == complete[name].records[: len(session.records)]


@pytest.mark.parametrize(
    "name", ["openai-messages/openai.json", "mini-swe-agent/mini-swe-agent-list.traj.json"]
)
def test_every_shorter_array_begins_the_longer_one(name: str) -> None:
    messages = json.loads((SAMPLES / name).read_bytes())
    log_format = detect(json.dumps(messages).encode())
    assert log_format is not None
    importer = IMPORTERS[log_format]
    whole = importer.read(json.dumps(messages).encode(), name).sessions[0]
    for count in range(2, len(messages)):
        part = importer.read(json.dumps(messages[:count]).encode(), name).sessions[0]
        assert part.external_id == whole.external_id
        assert part.records == whole.records[: len(part.records)]


@pytest.mark.parametrize("path", ALL, ids=by_name)
def test_byte_order_mark_and_carriage_returns_change_nothing(path: Path) -> None:
    data = path.read_bytes()
    marked = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
    plain, other = parse(data, path.name), parse(marked, path.name)
    assert other.sessions == plain.sessions
    assert other.problems == plain.problems


@pytest.mark.parametrize("path", ALL, ids=by_name)
def test_keys_and_tool_calls_are_distinguished(path: Path) -> None:
    for session in parse(path.read_bytes(), path.name).sessions:
        keys = [key for r in session.records if (key := getattr(r, "key", None))]
        assert len(keys) == len(set(keys))
        uses = [
            block["id"]
            for record in session.records
            for block in getattr(record, "blocks", [])
            if block["type"] == "tool_use"
        ]
        assert len(uses) == len(set(uses))
