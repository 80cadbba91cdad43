"""Counts of real logs equal those of an independent reader, or differ as the documentation says.

The causes are in docs/imports/importing.md, under "How counts compare".
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest

from sessions.importers import counts, parse
from sessions.importers.bundles import join_events
from sessions.importers.records import Call, Log, Message

CORPUS = os.environ.get("CONTEXTLAB_CORPUS", "")

COUNTS = ("calls", "usage_calls", "tool_calls", "compactions")
TOKENS = {
    "prompt_tokens": "prompt",
    "cache_read": "cache_read",
    "cache_create": "cache_write",
    "fresh_in": "uncached",
    "out": "output",
}
"""Parts of the usage by their columns in the index."""

DIFFERENT = {
    "aider-md": {"sessions", "human", "calls"},
    "claude-code": {"sessions", "calls", "prompt_tokens", "cache_read", "cache_create", "fresh_in"},
    "cline-session": {"human"},
    "copilot-cli": {"usage_calls", "out"},
    "deerflow-sse-replay": {"calls"},
    "gemini-cli": {"out"},
    "inspect-log": {"usage_calls", "prompt_tokens", "fresh_in", "out"},
    "langfuse-trace": {
        *("sessions", "human", "calls", "usage_calls", "tool_calls"),
        *("prompt_tokens", "fresh_in", "out"),
    },
    "litellm-call-log": {"tool_calls"},
    "opencode": {"human", "out"},
    "openhands-output": {"human", "calls", "tool_calls"},
    "otel-span-list(monocle)": {"human", "calls", "tool_calls"},
    "otel-spans(other)": {
        *("sessions", "human", "calls", "usage_calls", "prompt_tokens", "fresh_in", "out")
    },
    "otlp-json": {"sessions", "human", "tool_calls"},
    "pi": {"calls"},
    "who-and-when": {"calls"},
}
"""What is counted by another definition, by format of the index."""


@pytest.mark.skipif(not CORPUS, reason="CONTEXTLAB_CORPUS names no folder of real logs")
def test_counts_agree_with_the_corpus_index() -> None:
    found: dict[str, set[str]] = {}
    with (Path(CORPUS) / "INDEX.csv").open() as file:
        listed = groupby(csv.DictReader(file), lambda row: (row["fmt"], row["file"]))
        for (form, name), rows in listed:
            ours, theirs = _counted(_log(Path(CORPUS) / name)), _indexed(rows)
            apart = {column for column in {*ours, *theirs} if ours[column] != theirs[column]}
            found[form] = found.get(form, set()) | apart
    assert {form: apart for form, apart in found.items() if apart} == DIFFERENT
    assert len(found) > len(DIFFERENT)


def _log(path: Path) -> Log:
    if path.is_dir():
        files = [(one.name, one.read_bytes()) for one in path.iterdir()]
        return parse(join_events(files), str(path.parent))
    return parse(path.read_bytes(), path.name)


def _counted(log: Log) -> Counter[str]:
    whole = counts(log)
    found = Counter(sessions=len(log.sessions))
    for name in COUNTS:
        found[name] = whole[name]  # type: ignore[literal-required]
    for session in log.sessions:
        found["human"] += sum(isinstance(r, Message) and r.human for r in session.records)
        calls = [one for one in session.records if isinstance(one, Call) and one.usage]
        for usage in {one.call: one.usage for one in calls}.values():
            for column, name in TOKENS.items():
                found[column] += getattr(usage, name)
    return found


def _indexed(rows: Iterable[dict[str, str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        found["sessions"] += 1
        for name in ("human", *COUNTS, *TOKENS):
            found[name] += int(row[name] or 0)
    return found
