"""From messages to a context with a model's summary: store, job, client and provider."""

from __future__ import annotations

import re
from typing import Any

import pytest

from compaction import tokens
from compaction.policies.policy import Policy, Step, to_dict
from compaction.strategies.compact_settings import Compact
from compaction.summaries.summary import file_operation, render
from sessions.actions.accounts.teams import local_team
from sessions.actions.live.managed import catch_up
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import Artefact, Session
from tests import provider as at
from tests.sessions.live.managed.summarized import work
from tests.sessions.made import reads, result, session, user
from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db

COMPACT = Policy(
    "compact", steps=(Step("compact", Compact(trigger=0.05, summary_tokens=400, user_tokens=0)),)
)


@pytest.fixture
def there(asked_for: at.Provider, settings: Any) -> at.Provider:
    settings.SUMMARIZER = "anthropic"
    return asked_for


def live(steps: int) -> Session:
    made: list[records.Record] = [user("Find the port. The password is hunter2.", key="k")]
    for step in range(1, steps + 1):
        body = "".join(f"def handler_{step}_{line}():\n    return {line}\n" for line in range(50))
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        made.append(result(f"t{step}", body + "API_KEY=q9Zx7Lm2Rt5Vb8Nc4Wd\n", key=f"b{step}"))
    stored = append(local_team(), session(*made), tokens.counted, source="test").session
    stored.policy_version = version_of(stored.team, "compact", to_dict(COMPACT), preset=False)
    stored.window = 60_000
    stored.save()
    return stored


def summary_of(body: dict[str, Any]) -> at.Answer:
    """A model's summary of the transcript, with a reference copied from it."""
    ref = re.search(r"result of Read, ref (\S+)\]", body["messages"][0]["content"])
    assert ref is not None
    return at.Text(
        "<analysis>files were read</analysis>"
        + render(
            {
                "primary_request_and_intent": ["find the port, with [PASSWORD_1]"],
                "problem_solving": [file_operation("src/f1.py", "read", ref[1])],
            }
        )
    )


@pytest.mark.fault("F15", "K8")
def test_a_models_summary_takes_the_place_of_history(there: at.Provider) -> None:
    stored = live(8)
    there.answer = summary_of
    before = catch_up(stored)
    # A request never waits for a model, nor asks one.
    assert before.missing == ("summary",) and there.bodies == []
    work(stored)
    after = catch_up(stored)
    made = next(block for block in after.blocks if block.kind == "summary")
    assert after.missing == () and after.standing.used < before.standing.used
    assert "[PASSWORD_1]" in made.text and "<analysis>" not in made.text
    # The reference in the summary leads to the original that the model named.
    assert "m3.0" in made.refs
    row = Artefact.objects.get(session=stored)
    assert (row.maker, row.model, row.note) == ("anthropic", "claude-haiku-5-5", "")
    assert row.cost_microusd and row.usage["requests"] == len(there.bodies) >= 1
    assert row.masked["PASSWORD"] == 1 and row.masked["SECRET"] >= 1
    for body in there.bodies:
        assert "hunter2" not in str(body) and "q9Zx7Lm2Rt5Vb8Nc4Wd" not in str(body)


def test_whoever_writes_it_has_the_board_before_him(there: at.Provider) -> None:
    stored = live(8)
    there.answer = summary_of
    catch_up(stored)
    work(stored)
    asked = str(there.bodies[0]["messages"])
    assert "conversation_context" in asked and "<task>Find the port. The password is" in asked


def test_a_provider_that_fails_blocks_no_one(there: at.Provider) -> None:
    stored = live(8)
    there.answer = lambda body: at.Refusal()
    catch_up(stored)
    work(stored)
    after = catch_up(stored)
    assert after.missing == () and any(block.kind == "summary" for block in after.blocks)
    row = Artefact.objects.get(session=stored)
    assert row.maker == "extractive" and "declined" in row.note and row.cost_microusd


def test_what_a_model_made_up_is_cut_out_and_shown(there: at.Provider) -> None:
    stored = live(8)
    lines = {
        "primary_request_and_intent": ["find the port. It is in src/nowhere_at_all.py."],
        "current_work": ["reading"],
    }
    there.answer = lambda body: at.Text(render(lines))
    catch_up(stored)
    work(stored)
    after = catch_up(stored)
    made = next(block for block in after.blocks if block.kind == "summary")
    assert "find the port." in made.text and "nowhere_at_all" not in made.text
    row = Artefact.objects.get(session=stored)
    assert row.maker == "anthropic" and row.unsupported == ["src/nowhere_at_all.py"]
    run = stored.runs.get(origin="managed")
    number = run.revisions.get(edits__strategy="compact").number
    page = page_of(signed_in(), f"/sessions/{stored.pk}/revisions/{run.pk}/{number}/")
    text = " ".join(page.text.split())
    assert "Written by anthropic (claude-haiku-5-5 was asked" in text
    assert "Cut out: src/nowhere_at_all.py" in text
    assert "Unsupported facts 0 none" in text
