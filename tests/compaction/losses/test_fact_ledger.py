"""The fact ledger: what counts, and what became of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.context.blocks import FileRef
from compaction.facts.facts import COMMON
from compaction.losses.ledger import CompactedContext, ledger_of
from compaction.losses.weighty import (
    CARRIED,
    CHANGED,
    MENDED,
    NEEDED,
    OPEN_ERROR,
    READ,
    SAID,
    named_later,
)
from tests.build import Talk
from tests.compaction.losses.ledgers import of, states, worked


def said(text: str) -> Talk:
    talk = Talk()
    talk.user(text)
    return talk


def test_what_counts_and_how_much() -> None:
    weights = {fact.fact: fact.weight for fact in of(worked(), "").facts}
    assert weights == {
        "Found 3 errors.": OPEN_ERROR,
        "/repo/src/table.py": CHANGED,
        "MAX_ROWS": SAID,
        "4096": SAID,
        "https://docs.example/limits/rows": SAID,
        "/repo/src/rows.py": READ,
        "E ValueError: no rows": MENDED,
    }


def test_what_was_named_later_counts_and_says_when() -> None:
    talk = worked()
    before = len(talk.blocks)
    talk.respond()
    talk.call("Grep", {"pattern": "load_rows", "output_mode": "files_with_matches", "limit": 5000})
    later = named_later(talk.blocks[before:])
    assert later == {"load_rows": talk.step}, "an option names nothing, nor does a number"
    del talk.blocks[before:]
    (fact,) = [fact for fact in of(talk, "", needed=later).facts if fact.fact == "load_rows"]
    assert (fact.weight, fact.needed, fact.state) == (NEEDED, talk.step, "lost")


def test_what_tools_are_called_with_twice_counts() -> None:
    talk = Talk()
    for number in range(3):
        talk.respond()
        talk.call("Grep", {"pattern": "findMe" if number else "findOnce"})
    assert [fact.fact for fact in of(talk, "").facts] == ["findMe"]


def test_a_stub_of_a_failed_call_is_no_error() -> None:
    talk = Talk()
    talk.respond()
    failed = talk.result(talk.call("Bash", {"command": "ls"}), "[cleared]", error=True)
    talk.blocks[-1] = replace(failed, replaces=failed.id)
    assert of(talk, "").facts == ()


def test_an_earlier_summary_counts_and_what_is_common_does_not() -> None:
    talk = Talk()
    old = talk.add("It is in src/old_one.py", role="user", type="text", kind="summary")
    talk.blocks[-1] = replace(old, replaces="b9")
    for _ in range(COMMON + 1):
        talk.respond()
        talk.call("Grep", {"pattern": "everywhere_x"})
    assert {fact.fact: fact.weight for fact in of(talk, "").facts} == {"src/old_one.py": CARRIED}


@pytest.mark.parametrize(
    ("summary", "kept"),
    [
        ("It edited /repo/src/table.py.", {"/repo/src/table.py"}),
        ("It edited src/Table.py:12-40", {"/repo/src/table.py"}),
        ("`table.py` and rows.py", {"/repo/src/table.py", "/repo/src/rows.py"}),
        ("(other/table.py)", set()),
        ("at most 4,096 of max_rows", {"4096", "MAX_ROWS"}),
        ("4_096 rows", {"4096"}),
        ("see docs.example/limits/rows", {"https://docs.example/limits/rows"}),
        ("fails with ValueError: there are no rows", {"E ValueError: no rows"}),
        ("ruff: found 3 ERRORS.", {"Found 3 errors."}),
        ("nothing of it", set()),
    ],
)
def test_kept_in_other_words(summary: str, kept: set[str]) -> None:
    assert {
        fact for fact, state in states(of(worked(), summary)).items() if state == "kept"
    } == kept


@pytest.mark.parametrize(
    ("fact", "summary", "kept"),
    [
        ("OpenDoors_AtNight", "ran TestLamp_OpenDoors_AtNight", True),
        ("LastPainted", "renamed LastPaintedAt", True),
        ("lastPainted", "LAST: LastPaintedAt", True),
        ("LastPaint", "renamed LastPaintedAt", False),
        ("isOpen", "canIsOpenNow", False),
        ("src/doors/front", "edited front/hinge.py", False),
        ("src/doors/front", "edited doors/front/hinge.py", True),
        ("/home/me/src/doors", "src/doors/front/hinge.py", True),
        ("src/doors/hinge.py", "src/doors/lamp.py", False),
    ],
)
def test_a_name_inside_a_longer_one_and_a_folder_above_a_file(
    fact: str, summary: str, kept: bool
) -> None:
    assert states(of(said(fact), summary))[fact] == ("kept" if kept else "lost")


def test_what_is_pasted_written_or_built_in_does_not_count() -> None:
    talk = Talk()
    talk.user(
        "Mend loadDoors as here:\n```go\nhingeErr := os.MkdirAll(hingePath)\n```\nnot doorSize"
        "\n        - fileA.go\n    - keep_this\n    out.go:12: doorLog"
    )
    for _ in range(2):
        talk.respond()
        talk.call("Grep", {"pattern": "MkdirAll", "glob": "*_test.go"})
        talk.call("Edit", {"old_string": "a doorName = 1", "new_string": "b doorName = 2"})
    assert {fact.fact for fact in of(talk, "").facts} == {"loadDoors", "doorSize", "keep_this"}


def test_a_slip_with_a_file_is_forgotten_once_it_is_mended() -> None:
    talk = Talk()
    for failed in (True, False):
        talk.respond()
        edit = talk.call("Edit", {"file_path": "a/b.py"}, file=FileRef("a/b.py", "edit"))
        talk.result(edit, "String not found" if failed else "updated", error=failed)
        assert ("String not found" in states(of(talk, ""))) == failed


def test_a_bare_name_tells_nothing_where_two_files_have_it() -> None:
    talk = Talk()
    talk.respond()
    for path in ("a/__init__.py", "b/__init__.py"):
        talk.call("Write", {"file_path": path}, file=FileRef(path, "write"))
    assert set(states(of(talk, "wrote __init__.py")).values()) == {"lost"}
    assert states(of(talk, "wrote b/__init__.py"))["b/__init__.py"] == "kept"


def test_what_stands_elsewhere_is_kept_and_what_is_referred_to_retrievable() -> None:
    talk = worked()
    other = Talk().user("MAX_ROWS stays")
    found = states(of(talk, "", other))
    assert (found["MAX_ROWS"], found["4096"]) == ("kept", "lost")
    stub = replace(other, id="stub", text="[offloaded]", replaces="b0", refs=("b0",))
    found = states(of(talk, "", stub))
    assert (found["MAX_ROWS"], found["/repo/src/table.py"]) == ("retrievable", "lost")
    ledger = ledger_of(talk.blocks, "", CompactedContext(refs=["b6"]))
    assert states(ledger)["Found 3 errors."] == "retrievable"
    assert states(ledger)["E ValueError: no rows"] == "lost", "b4 holds it"


def test_a_path_with_blanks_is_found_as_it_stands() -> None:
    talk = Talk()
    talk.respond()
    path = "my notes/über uns.md"
    talk.call("Write", {"path": path}, file=FileRef(path, "write"))
    assert states(of(talk, f"wrote {path}.")) == {path: "kept"}
    assert states(of(talk, "wrote über uns.md")) == {path: "kept"}
    assert states(of(talk, "wrote notes")) == {path: "lost"}
