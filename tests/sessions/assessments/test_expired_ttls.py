"""Whether expired TTLs are avoidable is decided once for a session, and every page adds it up."""

from __future__ import annotations

import json

import pytest

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assessments import keep_assessment
from sessions.actions.assessments.session_verdicts import verdict_on_session
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.api.replay.following import version_of
from sessions.figures import money
from sessions.importers import records
from sessions.models import Assessment, Run, Session
from sessions.models.cache.causes import causes_in
from sessions.models.dashboard.dashboards import dashboard
from sessions.models.dashboard.slices import EVERYTHING, Split
from sessions.models.record import tail
from sessions.models.web.periods import of_all
from tests.sessions.made import count, says, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

START = 1_795_000_000_000
PERIOD = of_all(START - 86_400_000, START + 86_400_000)


def idling(name: str, agent: str, *calls: tuple[int, int]) -> Session:
    """A measured session of calls at these minutes that read nothing and each write so many
    tokens for five minutes."""
    made: list[records.Record] = [user("Go.", key="u")]
    for minute, write in calls:
        key = f"c{minute}"
        made += [
            says(key, "yes", key=f"k{minute}"),
            records.Call(
                key, model="claude-sonnet-4-5", at=START + 60_000 * minute,
                usage=Usage(0, 0, write, 0, 50),
            ),
        ]  # fmt: skip
    found = append(local_team(), session(*made, external_id=name), count, source="test").session
    measure(found)
    Session.objects.filter(pk=found.pk).update(agent=agent, ended_at=START)
    return Session.objects.get(pk=found.pk)


@pytest.fixture
def four() -> dict[str, Session]:
    again = (10, 10_500), (20, 11_000)
    made = (
        idling("pays", "scout", (0, 10_000), *again, (680, 11_500)),
        idling("costs", "scout", (0, 10_000), (10, 70_000)),
        idling("long", "writer", (0, 10_000), (680, 10_500)),
        idling("other", "writer", (0, 10_000), *again),
    )
    return {one.external_id: one for one in made}


def cards(of: Session) -> list[tail.Card]:
    return tail.causes(tail.stored(Run.objects.get(session=of)))


def test_only_breaks_that_an_hour_keeps_in_a_session_where_it_pays_are_avoidable(
    four: dict[str, Session],
) -> None:
    run = Run.objects.get(session=four["pays"])
    before = version_of(four["pays"], run)
    assert [card["avoidable"] for card in cards(four["pays"])] == [False] * 3, "not assessed yet"
    for one in four.values():
        keep_assessment(one)
    assert version_of(four["pays"], run) != before, "browsers ask for the cards again"
    found = {name: [card["avoidable"] for card in cards(one)] for name, one in four.items()}
    assert found == {
        "pays": [True, True, False], "costs": [False], "long": [False], "other": [True, True]
    }  # fmt: skip
    said = [card["sentence"].rpartition("), ")[2] for card in cards(four["pays"])]
    assert said == ["avoidable.", "avoidable.", "not avoidable: no TTL keeps a cache for 11 h."]
    (card,) = cards(four["costs"])
    assert card["sentence"].endswith(
        ", not avoidable: an hour's TTL would have cost more in this session."
    )
    page = json.loads(tail.figures_json(tail.stored(run)))
    assert page["causes"] == tail.figures(tail.stored(run)).causes == cards(four["pays"])


def test_what_is_avoidable_adds_up_however_sessions_are_split(four: dict[str, Session]) -> None:
    for one in four.values():
        keep_assessment(one)
    whole, *agents = (
        dashboard(local_team(), PERIOD, split).whole
        for split in (EVERYTHING, Split(agent="scout"), Split(agent="writer"))
    )
    paid = dict(Assessment.objects.values_list("session", "avoidable_microusd"))
    assert whole.of["avoidable"] == sum(sums.of["avoidable"] for sums in agents)
    assert whole.of["avoidable"] == sum(paid.values()) > 0
    for sums in (whole, *agents):
        can = [one for one in causes_in(sums) if one.avoidable]
        assert sum(one.microusd or 0 for one in can) == sums.of["avoidable"] > 0
    for one in four.values():
        on_cards = sum(card["cost_microusd"] for card in cards(one) if card["avoidable"])
        verdict = verdict_on_session(one, managed=False)
        assert on_cards == paid[one.pk] and verdict is not None
        said = f"≈{money(on_cards)}" if on_cards else "nothing avoidable"
        assert f", {said}" in verdict.sentence
    assert [one.breaks for one in causes_in(whole) if one.key == ("ttl", True)] == [4]
    assert [one.breaks for one in causes_in(whole) if one.key == ("ttl", False)] == [3]
