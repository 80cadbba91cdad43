"""Quotas: what agents get, when they go on, who sets and sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_user
from sessions.actions.operations import quotas
from sessions.actions.operations.quotas import resets, set_quota, used_by
from sessions.models import AuditEntry, QuotaUse, Session, StoredBytes, Team
from tests.sessions.people import shown
from tests.sessions.programs import Program
from tests.sessions.web.world import browser_of

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db,
    pytest.mark.usefixtures("jobs_wait"),
]
APPEND = "/sessions/one/messages"
NOON = datetime(2026, 3, 31, 12, 0, 30, tzinfo=UTC)


class Clock:
    """The time as quotas see it."""

    def __init__(self, now: datetime) -> None:
        self.moment = now

    def now(self) -> datetime:
        """As in django.utils.timezone."""
        return self.moment


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock(NOON)
    monkeypatch.setattr(quotas, "timezone", made)
    monkeypatch.setattr(quotas, "READ_SECONDS", 0.0)  # other servers write, too
    quotas._known.clear()
    yield made
    quotas._known.clear()


def refused(answer: Any, status: int) -> dict[str, Any]:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    return json.loads(answer.content)


def append(program: Program, text: str, **more: Any) -> Any:
    body = {"messages": [{"role": "user", "content": text}], **more}
    return program.ask("POST", APPEND, body)


def test_without_a_quota_nothing_is_counted(program: Program):
    assert append(program, "one").status_code == 201
    quotas.flush()
    assert not QuotaUse.objects.exists()


@pytest.mark.parametrize(
    ("quota", "until"),
    [
        ("requests_minute", datetime(2026, 3, 31, 12, 1, tzinfo=UTC)),
        ("requests_day", datetime(2026, 4, 1, tzinfo=UTC)),
    ],
)
def test_requests_beyond_the_quota_wait_until_it_resets(
    program: Program, clock: Clock, quota: str, until: datetime
):
    set_quota(program.team, {quota: 2}, COMMAND)
    assert append(program, "one").status_code == 201
    quotas.flush()  # as another server would have
    quotas._known.clear()
    assert append(program, "two").status_code == 201
    answer = append(program, "three")
    said = refused(answer, 429)
    assert (said["quota"], said["limit"], said["used"]) == (quota, 2, 2)
    assert datetime.fromisoformat(said["resets"]) == until
    assert int(answer["Retry-After"]) == (until - NOON).total_seconds()
    assert "2 of 2" in said["detail"]
    clock.moment = until
    assert append(program, "three").status_code == 201


def test_tokens_of_reported_calls_count_for_the_month(program: Program, clock: Clock):
    set_quota(program.team, {"tokens_month": 100}, COMMAND)
    usage = {"input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 10}
    said = {"messages": [{"role": "assistant", "content": "one"}], "usage": usage}
    assert program.ask("POST", APPEND, said).status_code == 201
    quotas.flush()
    assert refused(append(program, "two"), 429)["resets"] == "2026-04-01T00:00:00+00:00"
    assert program.ask("GET", APPEND).status_code == 200, "what is there may be read"
    clock.moment = datetime(2026, 4, 1, tzinfo=UTC)
    assert append(program, "two").status_code == 201


def test_full_storage_is_507_and_can_be_erased(program: Program):
    StoredBytes.objects.create(team=program.team, bytes=5_000_000)
    assert append(program, "one").status_code == 201
    set_quota(program.team, {"storage_bytes": 5_000_000}, COMMAND)
    said = refused(append(program, "two"), 507)
    assert (said["quota"], said["resets"]) == ("storage_bytes", None)
    assert "5.0 MB of 5.0 MB" in said["detail"]
    assert program.ask("GET", APPEND).status_code == 200
    # Not the quota but the key's scope refuses it.
    assert program.ask("DELETE", "/sessions/one").status_code == 403
    set_quota(program.team, {"storage_bytes": None}, COMMAND)
    assert append(program, "two").status_code == 201


def test_another_team_is_not_concerned(program: Program, stranger: Program):
    set_quota(program.team, {"requests_day": 0}, COMMAND)
    assert append(program, "one").status_code == 429
    assert append(stranger, "one").status_code == 201


def test_months_end_where_they_end():
    assert resets("month", datetime(2026, 12, 31, 23, 59, tzinfo=UTC)).month == 1
    assert resets("month", datetime(2026, 2, 1, tzinfo=UTC)) == datetime(2026, 3, 1, tzinfo=UTC)


def test_the_operator_sets_and_the_team_sees_them(program: Program):
    local_user()
    local = Team.objects.get(slug="local")
    page = f"/settings/server/quotas/{program.team.slug}/"
    assert browser_of(program.team, "owner").post(page, {"requests_day": 7}).status_code == 404
    operator = browser_of(local, "owner")
    assert operator.post(page, {"requests_day": -1}).status_code == 422
    assert operator.post(page, {"requests_day": 7, "storage_bytes": 3}).status_code == 302
    limits = {one.quota: one.limit for one in used_by(program.team)}
    assert (limits["requests_day"], limits["storage_bytes"]) == (7, 3_000_000)
    assert 'value="3"' in operator.get(page).content.decode()
    assert AuditEntry.objects.filter(team=program.team, action="quota.changed").exists()
    seen = browser_of(program.team, "viewer").get("/settings/team/").content.decode()
    assert "0 of 7" in " ".join(seen.split())
    assert "3.0 MB" in seen


def test_the_command_sets_and_shows_them(program: Program, capsys: pytest.CaptureFixture[str]):
    slug = program.team.slug
    call_command("quota", "--team", slug, "--requests-day", "9", "--storage-bytes", "5")
    call_command("quota", "--team", slug, "--storage-bytes", "none", "--json")
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["requests_day"]["limit"], said["storage_bytes"]["limit"]) == (9, None)


UNTIL = "resets Apr 1, 00:00 UTC. Until then, agents get 429"
ONCE = "resets Apr 1, 00:00 UTC. Once it is used up, agents get 429"


@pytest.mark.parametrize(
    ("quota", "limit", "used", "said"),
    [
        ("requests_day", 10, 8, ""),
        ("requests_day", 10, 9, f"requests per day is at 90 % 9 of 10, {ONCE}."),
        ("requests_day", 10, 10, f"requests per day is used up 10 of 10, {UNTIL}."),
        ("requests_day", 0, 0, f"requests per day is used up 0 of 0, {UNTIL}."),
        ("tokens_month", 1000, 999, f"tokens per month is at 99 % 999 of 1,000, {ONCE} for what"),
        ("storage_bytes", 2000, 1990, "storage is at 99 % ≈ 2.0 kB of 2.0 kB. Once it is used up,"),
        ("storage_bytes", 2000, 2000, "used up ≈ 2.0 kB of 2.0 kB. Until data is erased, agents g"),
    ],
)
def test_dashboard_and_live_say_that_a_quota_is_short(
    program: Program, quota: str, limit: int, used: int, said: str
) -> None:
    Session.objects.create(team=program.team, external_id="one")
    set_quota(program.team, {quota: limit}, COMMAND)
    StoredBytes.objects.update_or_create(team=program.team, defaults={"bytes": used})
    for period, start in quotas.starts(NOON).items():
        counts = {"requests": used if period == "day" else 0, "tokens": used}
        QuotaUse.objects.create(team=program.team, period=period, start=start, **counts)
    viewer = browser_of(program.team, "viewer")
    for address in ("/dashboard/?range=all", "/live/"):
        page = shown(viewer.get(address))
        text = " ".join(page.text.split())
        assert said in text and ("The quota of" in text) == bool(said), address
        if said:
            assert 'href="/settings/team/"' in page.html.partition("The quota of")[2]
