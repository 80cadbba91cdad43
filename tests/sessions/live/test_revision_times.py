"""Timings of managed revisions: stored with each, shown by page and API, unknown elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction import tokens
from compaction.policies.policy import Policy, Step, to_dict
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live import folds
from sessions.actions.live.managed import plan_at
from sessions.actions.live.stopwatch import Stopwatch
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import Artefact, Revision, Session
from tests.sessions.made import reads, result, session, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program

POLICY = Policy(
    "both",
    steps=(
        Step("offload", Offload(age=3, batch=3)),
        Step("compact", Compact(trigger=0.05, summary_tokens=400, user_tokens=0)),
    ),
)


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def live() -> Session:
    made: list[records.Record] = [user("Find the port.", key="k")]
    for step in range(1, 31):
        body = "".join(f"def handler_{step}_{line}():\n    return {line}\n" for line in range(60))
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        made.append(result(f"t{step}", body, key=f"b{step}"))
    stored = append(local_team(), session(*made), tokens.counted, source="live").session
    stored.policy_version = version_of(stored.team, "both", to_dict(POLICY), preset=False)
    stored.window = 40_000
    stored.save()
    for step in range(1, stored.step_count + 2):
        plan_at(stored, step)
    return stored


@pytest.mark.django_db
def test_every_managed_revision_has_its_times() -> None:
    stored = live()
    rows = list(Revision.objects.filter(run__session=stored, run__origin="managed"))
    assert len(rows) > 3
    assert all(row.shaping_us is not None and row.estimate_us is not None for row in rows)
    summed = {row.pk for row in rows if row.edits.filter(strategy="compact").exists()}
    assert summed and {row.pk for row in rows if row.summary_ms is not None} == summed
    made = set(Artefact.objects.filter(kind="summary").values_list("ms", flat=True))
    assert {row.summary_ms for row in rows} - {None} <= made

    answer = Program(local_team()).get("/sessions/s1/revisions")["revisions"]
    assert all(one["shaping_ms"] >= 0 and one["estimate_ms"] >= 0 for one in answer)
    assert {one["summary_ms"] is None for one in answer} == {True, False}
    number = next(row.number for row in rows if row.pk in summed)
    page = page_of(signed_in(), f"/sessions/{stored.pk}/revisions/{rows[0].run_id}/{number}/")
    assert "ms to shape" in page.text and "ms to write the summary (measured)" in page.text


@pytest.mark.django_db
def test_a_simulated_revision_has_none() -> None:
    stored = live()
    assert stored.policy_version is not None
    run = simulate_session(stored, str(stored.policy_version))
    rows = Revision.objects.filter(run=run)
    assert rows and not rows.exclude(shaping_us=None).exists()


def test_what_is_waited_for_is_no_shaping() -> None:
    watch = Stopwatch()
    watch.begin()
    watch.outside = 10**15
    watch.counting = 5_000
    watch.note(type("Revision", (), {"number": 3})())  # type: ignore[arg-type]
    assert (watch.times[3].estimate_us, watch.times[3].shaping_us) == (5, 0)
    watch.begin()
    assert (watch.counting, watch.outside, watch.summary_ms) == (0, 0, None)
