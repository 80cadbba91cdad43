"""Two sessions compared: page, API and command say the same."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.replay import comparisons
from sessions.actions.replay.comparison_verdicts import comparison_verdict
from sessions.actions.replay.comparisons import ComparedFigure, Comparison, compare
from sessions.actions.replay.similar_sessions import suggestions
from sessions.importers import records
from sessions.models import Session
from sessions.views.replay import comparison as page_module
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db


def _session(name: str, files: list[str], *, failed: str = "", end: str = "Done.") -> Session:
    made: list[records.Record] = [user("Read the <b>files</b>.", key=f"{name}0")]
    for file in files:
        made.append(reads(f"c{file}", f"t{file}", file, key=f"{name}{file}"))
        made.append(result(f"t{file}", "text", key=f"{name}{file}r", error=file == failed))
    made.append(says("end", end, key=f"{name}end"))
    found = append(local_team(), session(*made, external_id=name), count, source="test").session
    measure(found)
    found.refresh_from_db()
    return found


FILES = ["a.py", "b.py", "c.py", "d.py", "e.py"]


@pytest.fixture
def pair() -> tuple[Session, Session]:
    """Five files the same, then one that only a reads and fails with, then other words."""
    a = _session("task-one", [*FILES, "f.py"], failed="f.py")
    return a, _session("task-two", FILES, end="All done.")


def test_page_api_and_command_say_the_same(pair: tuple[Session, Session]) -> None:
    a, b = pair
    client = signed_in()
    answer = client.get("/api/v1/sessions/task-one/compare?with=task-two").json()
    assert answer["sentence"] == (
        "A takes 7 steps, B 6; the cost of both is unknown; they part at step 6."
    )
    assert answer["parting"] == {"row": 5, "a": 6, "b": None}
    assert answer["counts"] == {"same": 5, "reworded": 1, "changed": 0, "a": 1, "b": 0}
    row = answer["rows"][5]
    assert (row["op"], row["a"]["what"], row["a"]["failed"], row["b"]) == (
        "a", "Read f.py", True, None
    )  # fmt: skip
    assert answer["same_task"] and answer["next"] is None
    page = page_of(client, f"/compare/{a.pk}..{b.pk}/")
    assert answer["sentence"] in page.text
    assert "5 steps the same: 1–5 of A" in page.text
    assert page.links["A 6"] == f"/sessions/{a.pk}/steps/6/"
    out = StringIO()
    call_command("compare", "task-one", "task-two", "--steps", stdout=out)
    assert answer["sentence"] in out.getvalue() and "failed: Read f.py" in out.getvalue()
    out = StringIO()
    call_command("compare", "task-one", "task-two", "--json", stdout=out)
    assert json.loads(out.getvalue()) == answer


def test_a_step_in_the_url_opens_its_line(pair: tuple[Session, Session]) -> None:
    a, b = pair
    client = signed_in()
    page = page_of(client, f"/compare/{a.pk}..{b.pk}/?step=3")
    assert "steps the same" not in page.text and "Read c.py" in page.text
    assert 'id="here"' in page.html
    of_b = page_of(client, f"/compare/{a.pk}..{b.pk}/?step=6&side=b")
    here = of_b.markup.partition('id="here"')[2].partition("</li>")[0]
    assert "All done." in here
    rows = client.get(f"/compare/{a.pk}..{b.pk}/rows/?since=0&until=5").content.decode()
    assert rows.count("aligned-row same") == 5 and "Read e.py" in rows


def test_long_lists_have_pages(
    pair: tuple[Session, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    monkeypatch.setattr(page_module, "GROUPS", 2)
    client, address = signed_in(), f"/compare/{a.pk}..{b.pk}/"
    first = page_of(client, address)
    assert "1–2 of 3 lines" in first.text and first.links["Later"] == f"{address}?from=2"
    later = page_of(client, f"{address}?from=2")
    assert later.links["Earlier"] == f"{address}?from=0" and "reworded" in later.text
    assert "reworded" in page_of(client, f"{address}?step=7").text, "the page of the step"


def test_pages_of_rows_in_the_api(pair: tuple[Session, Session]) -> None:
    client = signed_in()
    asked = "/api/v1/sessions/task-one/compare?with=task-two&limit=4"
    first = client.get(asked).json()
    assert (len(first["rows"]), first["next"]) == (4, 4)
    rest = client.get(f"{asked}&after=4").json()
    assert (len(rest["rows"]), rest["next"]) == (3, None)


def _verdict(
    rows: list[comparisons.AlignedStep],
    cost: tuple[int | None, int | None],
    recall: tuple[float | None, float | None] = (None, None),
    at_least: tuple[bool, bool] = (False, False),
) -> str:
    figures = (
        ComparedFigure("cost", "Cost", "microusd", *cost, at_least=at_least),
        ComparedFigure("recall", "Recall", "share", *recall),
        ComparedFigure("steps", "Steps", "count", 12, 12),
    )
    none: dict[int, Any] = {}
    found = Comparison(Session(), Session(), figures, none, none, tuple(rows), same_task=True)
    return comparison_verdict(found).sentence


SAME = comparisons.AlignedStep("same", 1, 1)
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            _verdict([SAME, comparisons.AlignedStep("changed", 2, 2)],
                     (3 * MILLION, 4 * MILLION), (0.97, 0.91)),
            "A costs 25 % less (−$1.00) and keeps ≈97 % of needed facts in context against ≈91 %; "
            "they part at step 2.",
        ),
        (
            _verdict([SAME], (4 * MILLION, 3 * MILLION), (0.97, 0.91)),
            "B costs 25 % less (−$1.00) and keeps ≈91 % of needed facts in context against ≈97 %; "
            "they do the same at every step.",
        ),
        (
            _verdict([comparisons.AlignedStep("reworded", 1, 1)], (MILLION, None), (1.0, 1.0)),
            "Both take 12 steps; A costs $1.00 and the cost of B is unknown; both keep ≈100 % of "
            "needed facts in context; they make the same calls at every step.",
        ),
        (
            _verdict([SAME, comparisons.AlignedStep("b", None, 2)], (MILLION, MILLION)),
            "Both take 12 steps; both cost $1.00; they do the same until B goes on at step 2.",
        ),
        (
            _verdict([comparisons.AlignedStep("a", 1, None), comparisons.AlignedStep("changed",
                     2, 1)], (MILLION, 2 * MILLION), (0.5, 0.25), (False, True)),
            "Both take 12 steps; A costs $1.00 and B costs at least $2.00; A keeps ≈50 % of needed "
            "facts in context against ≈25 %; they part at step 1.",
        ),
        (
            _verdict([SAME, comparisons.AlignedStep("changed", 3, 2)], (None, None)),
            "Both take 12 steps; the cost of both is unknown; they part at step 3 of A and step 2 "
            "of B.",
        ),
    ],
)  # fmt: skip
def test_the_sentence(said: str, sentence: str) -> None:
    assert said == sentence


def test_suggestions_are_nearest_first(pair: tuple[Session, Session]) -> None:
    a, b = pair
    Session.objects.filter(pk__in=[a.pk, b.pk]).update(title="Ship it")
    named = _session("task-three", ["x.py"])
    Session.objects.filter(pk=named.pk).update(task="t", title="Other")
    alike = Session.objects.create(team=a.team, external_id="alike", title="Ship it!")
    Session.objects.create(team=a.team, external_id="far", title="Nothing of the sort")
    Session.objects.create(team=other_team(), external_id="theirs", title="Ship it")
    Session.objects.filter(pk=a.pk).update(task="t")
    a.refresh_from_db()
    assert [(one.session, one.why) for one in suggestions(a)] == [
        (named, "same task"),
        (b, "same first message"),
        (alike, "similar title"),
    ]
    page = page_of(signed_in(), f"/sessions/{a.pk}/compare/")
    assert page.links["Ship it!"] == f"/compare/{a.pk}..{alike.pk}/"
    found = page_of(signed_in(), f"/sessions/{a.pk}/compare/?q=nothing of")
    assert "Nothing of the sort" in found.text and "Ship it!" not in found.text
    assert "Nothing matches" in page_of(signed_in(), f"/sessions/{a.pk}/compare/?q=zzz").text


def test_two_selected_sessions_are_compared(pair: tuple[Session, Session]) -> None:
    a, b = pair
    client = signed_in()
    chosen = client.get(f"/compare/?session={a.pk}&session={b.pk}")
    assert chosen.headers["Location"] == f"/compare/{a.pk}..{b.pk}/"
    one = client.get(f"/compare/?session={a.pk}&session={a.pk}")
    assert one.headers["Location"] == f"/sessions/{a.pk}/compare/"
    assert "No session is selected" in page_of(client, "/compare/").text


def test_too_many_steps_are_refused(
    pair: tuple[Session, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    monkeypatch.setattr(comparisons, "MOST_STEPS", 6)
    client = signed_in()
    nameless = client.get("/api/v1/sessions/task-one/compare")
    assert nameless.status_code == 422 and nameless.json()["errors"][0]["pointer"] == "?with"
    answer = client.get("/api/v1/sessions/task-one/compare?with=task-two")
    assert answer.status_code == 422 and "has 7 steps" in answer.json()["detail"]
    assert "has 7 steps" in page_of(client, f"/compare/{a.pk}..{b.pk}/").text
    with pytest.raises(CommandError, match="has 7 steps"):
        call_command("compare", "task-one", "task-two")


def test_figures_are_those_of_the_sessions(pair: tuple[Session, Session]) -> None:
    a, b = pair
    Session.objects.filter(pk=a.pk).update(
        usage_calls=7, cost_microusd=500, cache_read_tokens=9, started_at=0, ended_at=60_000
    )
    a.refresh_from_db()
    found = compare(a, b)
    assert (found.figure("cost").a, found.figure("cost").b) == (500, None)
    assert (found.figure("read").a, found.figure("read").b) == (9, None)
    assert (found.figure("failures").a, found.figure("failures").b) == (1, 0)
    assert (found.figure("duration").a, found.figure("duration").change) == (60_000, None)
    assert not any(found.figure("cost").at_least)
