"""`contextlab verify PATH`: a second reader agrees with imports, and would notice if not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from compaction.context.session import Usage
from sessions import importers
from sessions.actions.imports import verified
from sessions.actions.imports.verified import Verified, verify_log
from sessions.importers.records import (
    Call,
    Clear,
    Compaction,
    Log,
    Message,
    Record,
    Rewind,
)
from sessions.models import Message as StoredMessage
from sessions.models import Team
from sessions.second_reader import READERS
from tests.sessions.importers.claude_lines import TALK, line, responded, said
from tests.sessions.made import count

pytestmark = pytest.mark.django_db

SAMPLES = Path(__file__).parents[1] / "importers" / "samples"
CORPUS = os.environ.get("CONTEXTLAB_CORPUS", "")


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("verify", *arguments, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def verified_lines(*given: dict[str, Any]) -> Verified:
    return verify_log("\n".join(map(json.dumps, given)).encode(), "s.jsonl", count)


def test_all_samples_are_equal_or_said_to_be_unverified() -> None:
    code, out = run(str(SAMPLES), "--json")
    files = json.loads(out)["files"]
    assert [one for one in files if one["state"] == "different"] == []
    assert code == 0
    compared = {one["format"] for one in files if one["state"] == "equal"}
    assert compared == set(READERS)
    others = {one["format"]: one["why_not"] for one in files if one["state"] == "not verified"}
    assert others == dict.fromkeys(set(importers.IMPORTERS) - compared, "no second reader")
    assert not Team.objects.filter(slug__startswith="verify").exists()
    assert not StoredMessage.objects.exists()


@pytest.mark.skipif(not CORPUS, reason="CONTEXTLAB_CORPUS names no folder of real logs")
def test_no_real_log_is_different() -> None:
    _, out = run(CORPUS, "--json")
    files = json.loads(out)["files"]
    assert [one for one in files if one["state"] == "different"] == []


def _without(kind: type[Record]) -> Callable[[list[Record]], list[Record]]:
    def fault(records: list[Record]) -> list[Record]:
        late = [at for at, one in enumerate(records) if isinstance(one, kind)][-1]
        return [one for at, one in enumerate(records) if at != late]

    return fault


def _other_text(records: list[Record]) -> list[Record]:
    block = next(one for one in records if isinstance(one, Message)).blocks[0]
    block["text"] = "Another text."
    return records


def _other_order(records: list[Record]) -> list[Record]:
    return [records[1], records[0], *records[2:]]


def _other_usage(records: list[Record]) -> list[Record]:
    for one in records:
        if isinstance(one, Call):
            one.usage = Usage(uncached=1)
    return records


REWOUND = [*TALK, said("u3", "a1", "Rather this."), responded("a3", "u3", "m3")]
BOUNDARY = line("system", "b", None, subtype="compact_boundary", compactMetadata={})
COMPACTED = [
    *TALK,
    BOUNDARY,
    said("s", "b", "What was.", isCompactSummary=True),
    responded("a3", "s", "m3"),
]
RESULT = [{"type": "tool_result", "tool_use_id": "t1", "content": "long"}]
CODEX = [
    ("session_meta", {"id": "c", "base_instructions": {"text": "You code."}}),
    ("response_item", {"type": "message", "role": "developer", "content": "Plan first."}),
    ("response_item", {"type": "message", "role": "user", "content": "Go on."}),
    ("response_item", {"type": "tool_search_output", "tools": [{"name": "look"}]}),
    ("response_item", {"type": "message", "role": "assistant", "content": "Done."}),
    ("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 9}}}),
    (
        "compacted",
        {
            "replacement_history": [
                {"type": "message", "role": "developer", "content": "Code now."},
                {"type": "message", "role": "user", "content": "Go on."},
            ]
        },
    ),
    ("response_item", {"type": "message", "role": "assistant", "content": "Coded."}),
]
MICRO = {"compactedToolIds": ["t1"]}
CLEARED = [
    said("u1", None),
    responded("a1", "u1", "m1", "t1"),
    said("u2", "a1", RESULT),
    line("system", "c", "u2", subtype="microcompact_boundary", microcompactMetadata=MICRO),
    responded("a2", "c", "m2"),
]


@pytest.mark.parametrize(
    ("given", "fault", "step", "sentence"),
    [
        (TALK, _without(Message), 0, "after the last step the log has text"),
        (TALK, _other_text, 1, "'Do it.'), ContextLab text"),
        (TALK, _other_order, 1, "ContextLab nothing more in context"),
        (TALK, _other_usage, 1, "usage in the log is unknown, in ContextLab (1, 0, 0, 0)"),
        (REWOUND, _without(Rewind), 3, "'Rather this.'), ContextLab text"),
        (COMPACTED, _without(Compaction), 3, "'What was.'), ContextLab text"),
        (CLEARED, _without(Clear), 2, "the log has cleared"),
    ],
)
def test_a_fault_of_an_importer_is_found_where_it_begins(
    monkeypatch: pytest.MonkeyPatch,
    given: list[dict[str, Any]],
    fault: Callable[[list[Record]], list[Record]],
    step: int,
    sentence: str,
) -> None:
    assert verified_lines(*given).differences == []
    parse = importers.parse

    def faulty(data: bytes, name: str = "") -> Log:
        log = parse(data, name)
        log.sessions[0].records = fault(log.sessions[0].records)
        return log

    monkeypatch.setattr(verified.importers, "parse", faulty)
    found = verified_lines(*given).differences
    assert [one.step for one in found] == [step]
    assert sentence in str(found[0])


def test_a_new_history_replaces_instructions_and_tools_too() -> None:
    """Codex says in full what a compaction leaves; only what is sent beside it stays."""
    found = verified_lines(*({"type": form, "payload": one} for form, one in CODEX))
    assert (found.steps, found.compactions, found.differences) == (2, 1, [])
    assert "2 contexts have their messages in another order" in found.notes[-1]


def test_a_response_of_the_client_goes_on_from_its_parent() -> None:
    """On resuming, Claude Code leaves out what came after the parent, such as `/exit`."""
    bare = said("x", "a2", "<command-name>/exit</command-name>")
    by_client = responded("c", "a2", "m9", model="<synthetic>")
    found = verified_lines(*TALK, bare, by_client, said("u3", "c"), responded("a3", "u3", "m3"))
    assert (found.steps, found.differences) == (3, [])


def test_what_the_usage_says_beyond_the_messages_is_told() -> None:
    first = {"input_tokens": 3, "cache_creation_input_tokens": 40_000, "output_tokens": 5}
    second = {"input_tokens": 3, "cache_read_input_tokens": 20_000, "output_tokens": 5}
    found = verified_lines(
        said("u1", None),
        responded("a1", "u1", "m1", usage=first),
        said("u2", "a1"),
        responded("a2", "u2", "m2", usage=second),
    )
    assert found.differences == []
    assert "of each prompt (system prompt, tools) are not in the log" in found.notes[0]
    assert "first at step 2, line 4: 20,000 tokens" in found.notes[1]


@pytest.mark.fault("F9")
def test_an_id_that_comes_again_is_no_circle() -> None:
    """A reader that went up by ids alone would never end."""
    entry = {"type": "message", "id": "a", "message": {"role": "assistant", "content": "x"}}
    data = "\n".join(json.dumps(one) for one in ({"type": "session", "id": "s"}, entry, entry))
    [found] = READERS["pi"](data.encode())
    assert len(found.steps) == 2 and len(found.end) == 2


def test_a_log_that_cannot_be_read_twice_is_said_to_be_different() -> None:
    odd = responded("a3", "a2", "m3")
    odd["message"]["content"] = [{"type": "thinking", "thinking": {"no": "text"}}]
    [found] = verified_lines(*TALK, odd).differences
    assert "it cannot be read twice: AttributeError" in found.what
    assert not Team.objects.filter(slug__startswith="verify-")


def test_joined_logs_and_other_files_are_never_counted_as_verified(tmp_path: Path) -> None:
    other = [{**one, "sessionId": "other", "uuid": f"{one['uuid']}-2"} for one in TALK[:1]]
    joined = tmp_path / "joined.jsonl"
    joined.write_text("\n".join(map(json.dumps, [*TALK, *other])))
    (tmp_path / "notes.md").write_text("# A heading\n\nand text")
    code, out = run(str(tmp_path))
    assert code == 1
    assert "the logs of several sessions were joined" in out
    assert out.endswith("2 files: 1 not verified, 1 refused.\n")


def test_a_log_without_messages_is_not_equal(tmp_path: Path) -> None:
    file = tmp_path / "rollout.jsonl"
    file.write_text(json.dumps({"type": "turn_context", "payload": {"model": "m"}}))
    code, out = run(str(file))
    assert (code, out.splitlines()[-1]) == (1, "1 files: 1 nothing to compare.")
    assert out.startswith("nothing to compare  ")
