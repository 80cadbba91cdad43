"""Fact ledgers of stored compactions: inputs, updates, and pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from compaction.losses.ledger import ENGINE
from compaction.losses.repairs import WINDOW
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.reviews.fact_ledgers import LOOKS, due, judge, keep_ledger
from sessions.importers import records
from sessions.models import FactLedger, Revision, Session
from sessions.models.record.sessions import SOURCE_LIVE
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db

SUMMARY = "It is about MAX_ROWS in src/rows.py; src/made_up.py comes next."


def talk(*after: records.Record, summary: str = SUMMARY, **stated: Any) -> list[records.Record]:
    """A request with two facts, a file read and one that failed, compacted; then the given
    messages."""
    made: list[records.Record] = [
        user("Set MAX_ROWS to 4096, <b>please_1</b>.", key="u"),
        reads("c1", "t1", "src/rows.py", key="a1"),
        result("t1", "def load_rows(): pass\n" * 20, key="b1"),
        reads("c2", "t2", "src/lost.py", key="a2"),
        result("t2", "OSError: no such file", key="b2", error=True),
        records.Compaction("auto", key="compaction", **stated),
    ]
    text = {"type": "text", "text": summary}
    made.append(records.Message("user", [text], key="s", kind="summary"))
    return [*made, *after]


def stored(made: list[records.Record], external_id: str = "s1") -> tuple[Session, Revision]:
    of = session(*made, external_id=external_id)
    found = append(local_team(), of, count, source="test").session
    measure(found)
    return found, Revision.objects.get(run__session=found)


def kept(ledger: FactLedger) -> dict[str, tuple[str, str | None, int | None]]:
    return {fact["fact"]: (fact["state"], fact["block"], fact["needed"]) for fact in ledger.facts}


def test_a_stored_compaction_has_a_ledger():
    later = reads("c3", "t3", "src/rows.py", key="a3"), reads("c4", "t4", "load_rows x", key="a4")
    found, revision = stored(
        talk(later[0], result("t3", "def load_rows(): pass", key="b3"), later[1])
    )
    ledger = keep_ledger(found, revision)
    assert ledger is not None
    assert kept(ledger) == {
        "OSError: no such file": ("lost", "5", None),
        "src/made_up.py": ("unsupported", None, None),
        "load_rows": ("lost", "3", 3),
        "MAX_ROWS": ("kept", "1", None),
        "4096": ("lost", "1", None),
        "please_1": ("lost", "1", None),
        "src/lost.py": ("lost", "4", None),
        "src/rows.py": ("kept", "3", 3),
    }
    assert (ledger.kept, ledger.lost, ledger.unsupported) == (2, 5, 1)
    assert (ledger.after["reread"], ledger.after_effects, ledger.looked_until) == (1, 1, 4)
    assert ledger.sections == [
        {"name": "all_user_messages", "title": "All user messages", "state": "unasked",
         "covered": 0, "of": 1}
    ]  # fmt: skip
    again = keep_ledger(found, revision)
    assert again is not None and again.pk == ledger.pk and again.facts == ledger.facts


def test_what_stands_after_it_keeps_facts_too():
    kept_one = records.Compaction("auto", key="compaction", keep=("u",))
    made = talk()
    made[5] = kept_one
    found, revision = stored(made)
    ledger = keep_ledger(found, revision)
    assert ledger is not None
    assert "4096" not in kept(ledger), "it was not replaced"
    judged = judge(found, revision)
    assert judged is not None and judged.ledger.unsupported == 1


def test_what_put_no_summary_in_has_no_ledger():
    made = [user("hi", key="u"), says("c1", "yes", key="a"), records.Rewind(("a",), key="x")]
    found, revision = stored([*made, says("c2", "no", key="b")])
    assert keep_ledger(found, revision) is None
    assert list(due(found)) == []
    found, revision = stored(talk()[:6], "s2")
    assert keep_ledger(found, revision) is None, "nothing stands for what was compacted"


def test_where_the_log_lacks_what_was_replaced_it_is_unknown():
    found, revision = stored(talk(tokens_before=150_000, tokens_after=9_000))
    ledger = keep_ledger(found, revision)
    assert ledger is not None and (ledger.score, ledger.unsupported) == (None, 1)
    page = page_of(signed_in(), f"/sessions/{found.pk}/revisions/recorded/1/")
    assert "The log lacks most of what was replaced" in page.text
    assert "no score" in page.text


def test_an_imported_session_is_looked_at_again_when_it_has_grown():
    found, revision = stored(talk())
    assert list(due(found)) == [revision]
    keep_ledger(found, revision)
    assert list(due(found)) == []
    found, revision = stored(talk(says("c3", "on it", key="z")))
    assert list(due(found)) == [revision]
    FactLedger.objects.update(looked_until=99)
    assert list(due(found)) == []
    FactLedger.objects.update(engine=ENGINE - 1)
    assert list(due(found)) == [revision], "the rules have changed"


@pytest.mark.parametrize(
    ("seen", "now", "outcome", "again"),
    [
        (2, 5, "", False),
        (2, 3 + LOOKS[0] - 2, "", False),
        (2, 3 + LOOKS[0] - 1, "", True),
        (3 + LOOKS[0] - 1, 3 + LOOKS[0] + 5, "", False),
        (3 + LOOKS[0] - 1, 3 + WINDOW - 1, "", True),
        (3 + WINDOW - 1, 500, "", False),
        (2, 5, "succeeded", True),
        (5, 5, "succeeded", False),
        (3 + WINDOW - 1, 500, "failed", False),
    ],
)
def test_when_a_live_session_is_looked_at_again(seen: int, now: int, outcome: str, again: bool):
    found, revision = stored(talk())
    keep_ledger(found, revision)
    FactLedger.objects.update(looked_until=seen)
    found.source, found.step_count, found.outcome = SOURCE_LIVE, now, outcome
    assert bool(list(due(found))) == again


def test_after_an_append_only_the_newest_are_asked_for():
    found, _ = stored(talk())
    found.source, found.step_count = SOURCE_LIVE, 3 + 2 * WINDOW + 1
    assert list(due(found, newest=True)) == []
    assert list(due(found)) != []


# Pages


@pytest.fixture
def client() -> Client:
    return signed_in()


@pytest.mark.parametrize("assessed", [True, False])
def test_the_page_lists_facts_by_state(client: Client, assessed: bool):
    found, revision = stored(talk(reads("c3", "t3", "src/lost.py", key="a3")))
    if assessed:
        keep_ledger(found, revision)
    address = f"/sessions/{found.pk}/revisions/recorded/1/"
    page = page_of(client, address)
    assert "suggestions, not verdicts" in page.text
    assert page.links["#5"] == f"/sessions/{found.pk}/steps/2/?m=5"
    assert "Step 3, Why?" in page.text
    assert "0 of 1 replaced user messages covered" in page.text
    assert "all 7" in page.text and "lost 4" in page.text and "kept 2" in page.text
    assert "2 of 6 kept, score " in page.text
    lost = page_of(client, f"{address}?facts=lost")
    listed = lost.html.split('id="ledger"')[1].split("What a summary")[0]
    assert "4096" in listed and "src/made_up.py" not in listed
    assert "Unsupported facts" in page.text and "too much was removed" in page.text
    assert "Open todos named nothing to count all –" in page.text
    nothing = page_of(client, f"{address}?facts=retrievable")
    assert "No fact is in that state." in nothing.text
    assert "please_1" in page_of(client, f"{address}?facts=x").text
    assert FactLedger.objects.exists() == assessed, "looking at a page writes nothing"


def test_what_only_a_simulation_made_is_judged_while_one_waits(client: Client):
    made: list[records.Record] = [user("Find the PORT_NUMBER.", key="k")]
    for step in range(1, 61):
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        made.append(result(f"t{step}", f"line of {step}\n" * 100, key=f"b{step}"))
    found = append(local_team(), session(*made), count, source="test").session
    measure(found)
    run = simulate_session(found, "sliding-window")
    page = page_of(client, f"/sessions/{found.pk}/revisions/{run.pk}/1/")
    assert "suggestions, not verdicts · simulated" in page.text
    assert "simulated-number" in page.classes and "estimated" not in page.classes
    assert "✕ missing" not in page.text
    assert not FactLedger.objects.exists()


def test_hostile_facts_stay_text(client: Client):
    hostile = "a_b/<script>alert(1)</script>/c_1.py"
    made = talk(summary=f"see {hostile}")
    made[1] = reads("c1", "t1", hostile, key="a1")
    found, revision = stored(made)
    ledger = keep_ledger(found, revision)
    assert ledger is not None
    assert any("<script>" in fact["fact"] for fact in ledger.facts)
    page = page_of(client, f"/sessions/{found.pk}/revisions/recorded/1/")
    assert "<script>alert" not in page.html
