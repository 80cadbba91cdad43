"""Externalise: which results are cut on arrival, what stays of it, and what enters whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.cut import WIDEST_ROW, cut
from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.externalise import Externalise
from compaction.strategies.offload import Offload
from tests.build import Talk, rough

LOG = "".join(f"line {n} of a long log\n" for n in range(1, 901))
TABLE = "id,name,size\n" + "".join(f"{n},name{n},{n * 2}\n" for n in range(1, 757))


def _run(text: str, *others: Step, **fields: object) -> Run:
    talk = Talk()
    talk.user("go")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "make all"}), text, **fields)
    for _ in range(12):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "ls"}), "a")
    step = Step("externalise", Externalise(exclude=("Skill",)))
    return simulate(talk.session(), Policy("e", steps=(step, *others)), rough)


def test_a_big_result_enters_as_its_ends_and_figures() -> None:
    run = _run(LOG)
    (revision,) = run.revisions
    assert (revision.step, revision.trigger) == (2, "entry")
    stub = revision.edits[0].replacement
    assert stub is not None
    head, *rows = stub.text.split("\n")
    sha = run.entries[2].block.sha[:8]
    assert head == (
        f"[externalised: Bash make all | {len(LOG)} chars, 901 lines | line 1 of a long log"
        f" | ref b2@{sha}]"
    )
    assert rows[0] == "line 1 of a long log"
    assert rows[-2:] == ["line 900 of a long log", ""]
    (gap,) = [row for row in rows if row.startswith("[… ")]
    shown = "\n".join(row for row in rows if row != gap)
    assert gap == f"[… {len(LOG) - len(shown)} chars, {900 - len(rows) + 2} lines left out …]"
    assert (stub.type, stub.tool_call, stub.refs) == ("tool_result", "call1", ("b2",))


def test_a_table_enters_as_its_first_rows() -> None:
    run = _run(TABLE)
    stub = run.revisions[0].edits[0].replacement
    assert stub is not None
    head, *rows = stub.text.split("\n")
    assert " | 756 rows total, showing first 100 | " in head
    assert " | csv, 756 rows: id 1–756, name, size 2–1512 | ref b2@" in head
    assert rows == TABLE.split("\n")[:101]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (LOG[:6_000], {}),
        (LOG, {"pinned": True}),
        (LOG, {"error": True}),
        (LOG, {"tool": "Skill"}),
    ],
)
def test_what_enters_whole(text: str, fields: dict[str, object]) -> None:
    assert _run(text, **fields).revisions == ()


def test_offload_takes_what_is_left_later() -> None:
    run = _run(LOG, Step("offload", Offload()))
    assert [(r.step, r.trigger, r.edits[0].targets) for r in run.revisions] == [
        (2, "entry", ("b2",)),
        (11, "batch", ("externalise:b2",)),
    ]
    last = run.revisions[-1].edits[0].replacement
    assert last is not None
    assert last.text.startswith("[offloaded: Bash make all | ")
    assert last.refs == ("b2",)


@pytest.mark.parametrize(
    ("text", "path", "figures"),
    [
        (TABLE.replace(",", "|"), None, "756 rows total, showing first 100 | "),
        ("".join(f"{n:>6}→{row}\n" for n, row in enumerate(TABLE.splitlines(), 1)), "t.csv",
         "756 rows total, showing first 100 | "),
        (json.dumps([{"id": n} for n in range(900)]), "a.json", "json, list of 900 with id"),
        (LOG + "ERROR: disk full\n" + "bye\n", None, "last error: ERROR: disk full"),
        ("Title\n\fSecond page\n" + LOG, "d.pdf", "pdf, 2 pages: Title; Second page"),
        ("<title>Home</title> https://x.org/a " + LOG, None, "web page: Home https://x.org/a"),
        ("def f(a, b):\n    return 1\n" * 300, "a.py", "python: f"),
        ("[image image/png]\n" + LOG, "a.png", " | image"),
    ],
)  # fmt: skip
def test_figures_fit_the_form(text: str, path: str | None, figures: str) -> None:
    assert figures in cut(text, path, 100, 2_000, 1_000).figures


def test_a_wide_table_takes_no_more_than_both_ends_would() -> None:
    wide = "\n".join([",".join(["cell"] * 900)] * 50)
    shown = cut(wide, "t.csv", 100, 2_000, 1_000)
    assert shown.figures.startswith("49 rows total, showing first 0 | ")
    assert len(shown.text) == WIDEST_ROW


@given(st.text(max_size=3_000), st.integers(0, 400), st.integers(0, 400), st.integers(1, 9))
@settings(max_examples=200)
def test_no_text_takes_more_than_its_room(text: str, head: int, tail: int, rows: int) -> None:
    shown = cut(text, None, rows, head, tail)
    assert shown == cut(text, None, rows, head, tail)
    assert "\n" not in shown.figures
    assert len(shown.text) <= max(head + tail + 60, WIDEST_ROW)
