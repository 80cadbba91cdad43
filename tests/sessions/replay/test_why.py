"""Why an agent forgot a text: page, API and command say the same."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from compaction.context.session import Usage
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.lacked import lacked
from sessions.actions.lab.draft_figures import DraftFigures
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.replay import kept_texts
from sessions.actions.replay import why as action
from sessions.actions.web.apart import FailedApart, NotInTime
from sessions.importers import records
from sessions.models import Assessment, FactLedger, ManagedContext, Revision, Run, Session
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db

PORT = "8417"


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm worker in this process, because another does not see the test's transaction."""

    def answer(team: UUID, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert seconds == kept_texts.SECONDS
        sent = json.loads(json.dumps({**asked, "team": str(team)}))
        [line] = [json.dumps(line) for line in DraftFigures().lines(sent) if line is not None]
        found: dict[str, Any] = json.loads(line)
        if found["kind"] == "failed":
            raise FailedApart(found["error"])
        return found

    monkeypatch.setattr(kept_texts, "answer", answer)


@pytest.fixture
def forgetful() -> Session:
    """A file with a port is read, compacted without it, read again, and used."""
    made: list[records.Record] = [
        user("Deploy it.", key="k0"),
        reads("c1", "t1", "checkout.env", key="k1"),
        result("t1", f'URL="x"\nPORT={PORT} <b>\nDRAIN=25', key="k2"),
        says("c2", "Read.", key="k3"),
        user("Go on.", key="k4"),
        says("c3", "Going on.", key="k5"),
        records.Compaction("auto", key="compaction", tokens_before=999, tokens_after=99),
        records.Message(
            "user", [{"type": "text", "text": "The env was read."}], key="s", kind="summary"
        ),
        user("And?", key="k6"),
        reads("c4", "t4", "checkout.env", key="k7"),
        result("t4", f'URL="x"\nPORT={PORT} <b>', key="k8"),
        says("c5", f"It is {PORT}.", key="k9"),
    ]
    found = append(local_team(), session(*made), count, source="test").session
    measure(found)
    found.refresh_from_db()
    return found


def _asked(client: Client, of: Session, **query: str) -> dict[str, object]:
    answer = client.get(f"/api/v1/sessions/{of.pk}/why?{urlencode(query)}")
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def test_what_removed_a_text_and_what_that_cost(forgetful: Session) -> None:
    client = signed_in()
    found = _asked(client, forgetful, text=PORT)
    assert [one["state"] for one in found["stays"]] == [
        "unseen",
        "in_context",
        "lost",
        "in_context",
    ]
    assert found["removed"] == {"step": 4, "by": "Automatic compaction", "revision": 1}
    assert found["sentence"] == (
        "Automatic compaction at step 4 removed it. At step 4 the agent read it again and used it "
        "at step 5."
    )
    assert [(one["why"], one["steps"]) for one in found["costs"]] == [("read again", [4])]
    assert found["tries"] is None
    page = page_of(client, f"/sessions/{forgetful.pk}/why/?text={PORT}")
    assert found["sentence"] in page.text
    assert "Step 4 Read again Read checkout.env, in context from step 5" in page.text
    assert "PORT=8417 <b>" in page.text, "content is shown as text"
    assert "What the loss cost is unknown: its calls have no price." in page.text
    assert (found["loss"], found["came_again"]) == ("", None)
    out = StringIO()
    call_command("why", "s1", PORT, stdout=out)
    assert out.getvalue().startswith(str(found["sentence"]))
    assert "at step 4: unknown" in out.getvalue()
    assert _asked(client, forgetful, text=f"port={PORT}")["costs"] == found["costs"], "any case"


def test_what_came_again_is_a_part_of_the_cost_on_every_surface(forgetful: Session) -> None:
    calls: list[records.Record] = [says("c6", "Done.", key="k10"), says("c7", "Bye.", key="k11")]
    for step in range(1, 8):
        usage = Usage(cache_read=9_000, cache_write_5m=1_000, output=100)
        calls.append(records.Call(f"c{step}", "claude-sonnet-4-5", usage=usage))
    append(local_team(), session(*calls), count, source="test")
    forgetful.refresh_from_db()
    measure(forgetful)
    forgetful.refresh_from_db()
    client, tokens = signed_in(), forgetful.scaled(len(f"""URL="x"\nPORT={PORT} <b>"""))
    call = 9_000 * 300 + 1_000 * 3_750 + 100 * 15_000
    again = tokens * (3_750 + 2 * 300)  # written by step 5, read by steps 6 and 7
    found = _asked(client, forgetful, text=PORT)
    assert found["costs"][0]["cost_microusd"] == call // 1000  # type: ignore[index]
    assert found["came_again"] == {
        "tokens": tokens,
        "calls": 3,
        "cost_microusd": (again + 500) // 1000,
    }
    assert found["cost_microusd"] == call // 1000 + (again + 500) // 1000
    said = str(found["loss"])
    assert said == (
        "The loss cost ≈$0.0081: 1 call made because of it (≈$0.0080), and "
        f"{tokens} tokens that came again, in the prompts of 3 other calls (≈$0.00012), cache "
        "breaks not included."
    )
    assert said in page_of(client, f"/sessions/{forgetful.pk}/why/?text={PORT}").text
    revision = reverse("revision", args=[forgetful.pk, "recorded", 1])
    assert said in page_of(client, revision).text
    out = StringIO()
    call_command("why", "s1", PORT, stdout=out)
    assert said in out.getvalue()
    assert lacked(forgetful)["losses_microusd"] == found["cost_microusd"]


def test_each_place_answers_for_the_step_that_is_asked_about(forgetful: Session) -> None:
    client, done = signed_in(), {"type": "text", "text": "Done so far."}
    more = [
        records.Compaction("auto", key="again"),
        records.Message("user", [done], key="s2", kind="summary"),
        user("Once more?", key="k10"),
        reads("c6", "t6", "checkout.env", key="k11"),
        result("t6", f'URL="x"\nPORT={PORT} <b>', key="k12"),
        says("c7", "Good.", key="k13"),
    ]
    append(local_team(), session(*more), count, source="test")
    forgetful.refresh_from_db()
    measure(forgetful)
    found = [_asked(client, forgetful, text=PORT, step=step) for step in ("4", "6")]
    assert [one["removed"]["step"] for one in found] == [4, 6]  # type: ignore[index]
    assert found[0]["sentence"] == _asked(client, forgetful, text=PORT)["sentence"]
    for step, answer in zip((4, 6), found, strict=True):
        page = page_of(client, f"/sessions/{forgetful.pk}/why/?text={PORT}&step={step}")
        assert str(answer["sentence"]) in page.text
        out = StringIO()
        call_command("why", "s1", PORT, step=step, stdout=out)
        assert out.getvalue().startswith(str(answer["sentence"]))
    refused = client.get(f"/api/v1/sessions/{forgetful.pk}/why?text={PORT}&step=99")
    assert refused.status_code == 422 and "steps 1 to 7" in refused.json()["detail"]
    with pytest.raises(CommandError, match="steps 1 to 7"):
        call_command("why", "s1", PORT, step=0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("9999", "The model never saw it, parts of longer words aside."),
        ("Deploy it", "Automatic compaction at step 4 removed it. It was not needed again."),
        (
            'URL="x"',
            "Automatic compaction at step 4 removed it. At step 4 the agent read it again.",
        ),
        ("DRAIN=25", "Automatic compaction at step 4 removed it. It was not needed again."),
        ("And?", "It never left the context."),
    ],
)
def test_each_end_of_a_text_has_its_sentence(forgetful: Session, text: str, sentence: str) -> None:
    assert _asked(signed_in(), forgetful, text=text)["sentence"] == sentence


def test_the_link_of_a_lost_fact_asks_about_its_step(
    forgetful: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action, "FEW", 0)
    client = signed_in()
    path = f"/sessions/{forgetful.pk}/why/?text={PORT}"
    assert "too common to follow" in page_of(client, path).text
    page = page_of(client, f"{path}&step=5")
    assert "Automatic compaction at step 4 removed it. At step 4 the agent read it again" in (
        page.text
    ), "at step 5 it was back: what brought it back is the answer"
    assert "too common" in page_of(client, f"{path}&step=99").text, "no step of the session"


def test_what_was_removed_as_it_arrived_was_lost() -> None:
    made: list[records.Record] = [
        user("Deploy it.", key="k0"),
        reads("c1", "t1", "checkout.env", key="k1"),
        result("t1", f"PORT={PORT}", key="k2"),
        records.Compaction("auto", key="compaction"),
        records.Message(
            "user", [{"type": "text", "text": "The env was read."}], key="s", kind="summary"
        ),
        says("c2", "Going on.", key="k3"),
        user("And?", key="k4"),
        reads("c3", "t3", "checkout.env", key="k5"),
        result("t3", f"PORT={PORT}", key="k6"),
        says("c4", f"It is {PORT}, yes {PORT}.", key="k7"),
        user("Sure?", key="k8"),
        says("c5", f"It is {PORT}.", key="k9"),
    ]
    found = append(local_team(), session(*made), count, source="test").session
    client = signed_in()
    life = _asked(client, found, text=PORT)
    assert [one["state"] for one in life["stays"]] == ["unseen", "lost", "in_context"]
    assert life["sentence"] == (
        "Automatic compaction at step 2 removed it. At step 3 the agent read it again and used it "
        "at step 4."
    )
    page = page_of(client, f"/sessions/{found.pk}/why/?text={PORT}").text
    said = "Step 1 First shown Read checkout.env, removed at step 2 before the model call"
    assert said in page, "no step had it in its context"
    assert "Step 3 Read again Read checkout.env, in context from step 4" in page


def test_a_cost_is_shared_with_what_the_same_calls_needed(forgetful: Session) -> None:
    revision = Revision.objects.get(run__session=forgetful, number=1)
    lines = [(PORT, "lost", 4), ("DRAIN=25", "lost", 4), ("a", "lost", 5), ("b", "lost", None)]
    facts = [{"fact": fact, "state": at, "needed": step} for fact, at, step in lines]
    FactLedger.objects.filter(revision=revision).delete()
    path = f"/sessions/{forgetful.pk}/why/?text={PORT}"
    assert "Shared with" not in page_of(signed_in(), path).text
    Assessment.objects.update_or_create(session=forgetful, defaults={"dropped": {"1": facts}})
    page = page_of(signed_in(), path).text
    assert "Shared with 1 other lost fact that the same calls needed." in page


def test_a_path_is_named_as_it_was_written() -> None:
    made = [user("See /srv/deploy/checkout.env first.", key="k")]
    found = append(local_team(), session(*made), count, source="test").session
    page = page_of(signed_in(), f"/sessions/{found.pk}/why/?text=srv/deploy/checkout.env")
    assert "<code>/srv/deploy/checkout.env</code></h2>" in page.html


def test_a_call_that_uses_a_text_twice_counts_once() -> None:
    twice = [says("c1", f"It is {PORT}.", key="a"), says("c1", f"Yes, {PORT}.", key="b")]
    made = [user(f"The port is {PORT}.", key="k"), *twice]
    found = append(local_team(), session(*made), count, source="test").session
    answer = _asked(signed_in(), found, text=PORT)
    assert len(answer["used"]) == 2
    assert answer["sentence"] == "It was in context at every step that used it: once."


def test_a_path_is_no_more_common_for_what_shows_its_end_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[records.Record] = [user("See /srv/deploy/checkout.env first.", key="k")]
    for step in range(1, 4):
        made.append(says(f"c{step}", "In deploy/checkout.env it is.", key=f"a{step}"))
        made.append(user("And?", key=f"u{step}"))
    found = append(local_team(), session(*made), count, source="test").session
    monkeypatch.setattr(action, "FEW", 2)
    client = signed_in()
    answer = client.get(f"/api/v1/sessions/{found.pk}/why?text=deploy/checkout.env")
    assert answer.status_code == 422
    life = _asked(client, found, text="/srv/deploy/checkout.env")
    assert life["sentence"] == "It was in context at every step that used it: 3 times."


def test_policies_are_simulated_on_the_session(forgetful: Session) -> None:
    client = signed_in()
    rows = _asked(client, forgetful, text=PORT, policies="true")["policies"]
    assert isinstance(rows, list)
    by = {row["policy"]: row for row in rows}
    assert by["recorded"]["at"] == ["lost", "in_context"]
    assert by["balanced@1"]["at"] == ["in_context", "in_context"]
    assert rows[-1]["policy"] == "recorded", "what kept it comes first"
    assert len(by) == len({*kept_texts.TRIED} & set(PRESETS)) + 1
    page = client.get(f"/sessions/{forgetful.pk}/why/?text={PORT}").content.decode()
    [address] = re.findall(r'hx-get="([^"]+)"', page)
    part = client.get(address.replace("&amp;", "&")).content.decode()
    assert 'id="policies"' in part and "balanced@1" in part and "In context 1 of 2" in part
    assert 'id="avoidable"' in page, "the verdict has a place for what the simulation says"
    assert "Avoidable: balanced@1, " in part and 'hx-swap-oob="true"' in part
    rows_of = client.get(f"/sessions/{forgetful.pk}/why/policies/?text={PORT}&needs=x,-1,999,٣")
    assert "1 of 2" not in rows_of.content.decode(), "other steps than its own are left out"


def test_the_contexts_that_the_model_saw_have_the_name_of_their_run() -> None:
    stored = grown(12)
    path = f"/sessions/{stored.pk}/why/policies/?text=handler_1_7"
    client = signed_in()
    assert b"recorded contexts" in client.get(path).content
    run = Run.objects.get(session=stored, origin=Run.Origin.MANAGED)
    ManagedContext.objects.create(
        id="ctx_a", run=run, revision=0, seq=1, step=1, format="anthropic", tokens=1
    )
    page = client.get(path).content.decode()
    assert f"managed contexts, {run.policy_version}" in page
    assert "Against managed" in page and "recorded" not in page
    out = StringIO()
    call_command("why", str(stored.pk), "handler_1_7", policies=True, stdout=out)
    assert f"managed, {run.policy_version}: " in out.getvalue()
    assert "recorded: " not in out.getvalue()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NotInTime(3.0, busy=True), "Other simulations are running"),
        (NotInTime(20.0, busy=False), "The simulation took too long"),
        (FailedApart("KeyError"), "The simulation failed"),
    ],
)
def test_without_an_answer_the_page_says_why(
    forgetful: Session, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(kept_texts, "answer", refuse)
    page = signed_in().get(f"/sessions/{forgetful.pk}/why/policies/?text={PORT}")
    assert said.encode() in page.content


def test_a_worker_reads_only_sessions_of_the_team(forgetful: Session) -> None:
    forgetful.team = other_team()
    with pytest.raises(FailedApart, match="DoesNotExist"):
        kept_texts.compared(forgetful, PORT, [4])


def test_what_cannot_be_answered_says_why(
    forgetful: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in()
    monkeypatch.setattr(action, "MOST", 1)
    answer = client.get(f"/api/v1/sessions/{forgetful.pk}/why?text={PORT}")
    assert answer.status_code == 422
    assert "Give a longer text, such as the words beside it" in answer.json()["detail"]
    page = page_of(client, f"/sessions/{forgetful.pk}/why/?text={PORT}")
    assert "Give a longer text, such as the words beside it, or a step that needed it." in page.text
    with pytest.raises(CommandError, match=f"Give a longer text.* why s1 {PORT} --step N"):
        call_command("why", "s1", PORT)
    monkeypatch.setattr(action, "MOST", 300)
    with monkeypatch.context() as patch:
        patch.setattr(action, "MOST_BYTES", 1)
        answer = client.get(f"/api/v1/sessions/{forgetful.pk}/why?text={PORT}")
        assert answer.status_code == 422 and "too much to look through" in answer.json()["detail"]
        page = page_of(client, f"/sessions/{forgetful.pk}/why/?text={PORT}")
        assert "Search for the text instead" in page.text
    monkeypatch.setattr(kept_texts, "MOST_STEPS", 1)
    answer = client.get(f"/api/v1/sessions/{forgetful.pk}/why?text={PORT}&policies=true")
    assert answer.status_code == 422 and "in the lab" in answer.json()["detail"]
    part = client.get(f"/sessions/{forgetful.pk}/why/policies/?text={PORT}")
    assert b"in the lab" in part.content
    with pytest.raises(CommandError, match="no run"):
        call_command("why", "s1", PORT, "--run", "other")


def test_a_text_that_was_never_seen_is_not_simulated(forgetful: Session) -> None:
    assert _asked(signed_in(), forgetful, text="9999", policies="true")["policies"] == []


def test_a_simulation_that_fails_says_so(
    forgetful: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FailedApart("ValueError")

    monkeypatch.setattr("sessions.api.replay.why.compared", fail)
    answer = signed_in().get(f"/api/v1/sessions/{forgetful.pk}/why?text={PORT}&policies=true")
    assert answer.status_code == 500 and "without policies" in answer.json()["detail"]


def test_another_teams_session_is_not_there(forgetful: Session) -> None:
    client = signed_in()
    forgetful.team = other_team()
    Session.objects.filter(pk=forgetful.pk).update(team=forgetful.team)
    for address in (
        f"/sessions/{forgetful.pk}/why/?text={PORT}",
        f"/sessions/{forgetful.pk}/why/policies/?text={PORT}",
        f"/api/v1/sessions/{forgetful.pk}/why?text={PORT}",
    ):
        assert client.get(address).status_code == 404
