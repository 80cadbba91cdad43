"""Measures of a compaction: each target met and missed, and what they come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from compaction.context.blocks import FileRef
from compaction.context.session import Session
from compaction.losses.ledger import CompactedContext, ledger_of
from compaction.losses.quality import Compacted, Measure, fit, measures
from compaction.losses.weighty import named_later
from compaction.proposals.plan import Span
from compaction.summaries.extract import extractive
from compaction.summaries.model.asked import parts_of
from tests.build import Talk, rough
from tests.compaction.talks import talks


def _talk() -> Talk:
    talk = Talk()
    talk.user("Mend src/parse_all.py, see issue_4711.")
    talk.respond()
    todos = [{"content": "write the changelog", "status": "pending"}]
    talk.result(talk.call("TodoWrite", {"todos": todos}), "noted")
    edit = talk.call("Edit", {"path": "src/parse_all.py"}, file=FileRef("src/parse_all.py", "edit"))
    talk.result(edit, "done")
    talk.result(talk.call("Bash", {"command": "pytest -q"}), "ValueError: bad token_77", error=True)
    talk.say("Mending it. " * 200)
    return talk


def _measured(talk: Talk, summary: str, **fields: Any) -> tuple[dict[str, Measure], str]:
    span = tuple(talk.blocks)
    values: dict[str, Any] = {"before": 100_000, "after": 20_000, "window": 200_000}
    made = Compacted(span, (), (), summary, rough(summary), **(values | fields))
    ledger = ledger_of(span, summary, CompactedContext(), needed=fields.get("needed"))
    found = measures(made, ledger, parts_of(span, summary, ()))
    return {one.name: one for one in found}, fit(found, ledger.facts)


def _summary(talk: Talk) -> str:
    blocks = tuple(talk.blocks)
    return extractive(Span("nine", blocks, blocks, None, 1_000))


def test_the_extractive_summary_meets_its_targets() -> None:
    talk = _talk()
    found, said = _measured(talk, _summary(talk))
    assert {name for name, one in found.items() if one.met is False} == set()
    assert said == "right"
    assert (found["sections"].value, found["sections"].of) == (9, 9)
    assert (found["changed"].value, found["open_errors"].value) == (1, 1)
    assert (found["gain"].value, found["gain"].of) == (80_000, 100_000)
    assert found["references"].value == found["references"].of == 1
    assert found["growth"].value is None and found["growth"].met is None


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (("src/parse_all.py", "src/elsewhere.py"), {"changed", "unsupported"}),
        (("bad token_77", "all fine"), {"open_errors", "errors"}),
        (("write the changelog", "rest a while"), {"todos"}),
        (("<pending_tasks>", "<tasks>"), {"sections"}),
        (('ref="b', 'ref="b9'), {"references"}),
        (("Mending it.", "API_KEY=q9Zx7Lm2Rt5Vb8Nc4Wd"), {"secrets"}),
    ],
)
def test_what_is_wrong_is_reported(change: tuple[str, str], missed: set[str]) -> None:
    talk = _talk()
    found, said = _measured(talk, _summary(talk).replace(*change))
    assert missed <= {name for name, one in found.items() if one.met is False}
    assert said == ("over" if missed & {"changed", "open_errors", "todos"} else "right")


@pytest.mark.parametrize(
    ("sizes", "missed"),
    [
        ({"after": 95_000}, {"gain", "target"}),
        ({"after": 100_000}, {"smaller", "gain", "target"}),
        ({"window": 40_000}, {"target"}),
        ({"window": None, "before": None}, set()),
    ],
)
def test_too_little_is_reported(sizes: dict[str, Any], missed: set[str]) -> None:
    talk = _talk()
    found, said = _measured(talk, _summary(talk), **sizes)
    assert {name for name, one in found.items() if one.met is False} == missed
    assert said == ("under" if missed else "right")


def test_what_was_needed_and_lost_is_too_much() -> None:
    talk = _talk()
    later = Talk()
    later.step = 10
    later.call("Read", {"path": "src/lost_for_ever.py"})
    talk.blocks[0] = replace(talk.blocks[0], text="src/lost_for_ever.py")
    span = tuple(talk.blocks)
    needed = named_later(later.blocks)
    text = "<summary>nothing</summary>"
    ledger = ledger_of(span, text, CompactedContext(), needed=needed)
    assert fit([], ledger.facts) == "over"
    assert fit([], ()) == "right"


def test_a_summary_that_grows_is_reported() -> None:
    talk = _talk()
    earlier = replace(talk.blocks[0], kind="summary", tokens=100, text="<summary>")
    talk.blocks[0] = earlier
    found, _ = _measured(talk, "word " * 600)
    assert found["growth"].value == 10 * rough("word " * 600) and found["growth"].met is False


@given(talks())
@settings(max_examples=40)
def test_measures_hold_for_any_session(session: Session) -> None:
    blocks = session.blocks
    half = len(blocks) // 2
    span, standing = blocks[:half], blocks[half:]
    text = extractive(Span("nine", span, span, None, 1_000))
    made = Compacted(span, (), standing, text, rough(text), 1_000, 500, 2_000)
    ledger = ledger_of(span, text, CompactedContext(standing))
    found = measures(made, ledger, parts_of(span, text, standing))
    assert found == measures(made, ledger, parts_of(span, text, standing))
    assert len({one.name for one in found}) == len(found) == 21
    for one in found:
        assert one.value is None or one.value >= 0
        assert one.met is None or one.value is not None
        if one.unit == "share" and one.value is not None and one.name not in ("smaller", "summary"):
            assert one.of is not None and one.value <= one.of
    assert fit(found, ledger.facts) in ("over", "under", "right")
