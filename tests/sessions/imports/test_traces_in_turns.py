"""One job of a team's exporters at a time, and large requests in parts that are not done again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from sessions.actions.imports import parts, together, traces, uploads
from sessions.actions.imports.traced import TracedGroup
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.models import Import, ImportFile, Job, Session, Team
from tests.sessions.imports.test_traces_in_parts import Spans, Traced, team, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait"), pytest.mark.store]


def separate_traces(many: int) -> list[Spans]:
    """A trace of one call each."""
    made = []
    for number in range(many):
        one = Traced()
        main = one.begin("invoke_agent", None)
        one.chat(main, [text("user", f"Find kelp {number}.")], text("assistant", "Here."))
        made.append(one.ended())
    return made


def upload(ours: Team, spans: Spans) -> Job:
    data = encode_spans(spans).SerializeToString()
    run = uploads.begin_upload(ours, [uploads.BodyFile("OTLP traces", data)], actor=None)
    assert run.job is not None
    return run.job


def attempted(job: Job) -> bool:
    claimed = jobs.claim(job.pk)
    assert claimed and claimed.token
    return attempt(claimed.pk, claimed.token)


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each group was appended."""
    found: Counter[str] = Counter()
    append = TracedGroup.append

    def counted(group: TracedGroup, *given: Any) -> Any:
        found[group.name] += 1
        return append(group, *given)

    monkeypatch.setattr(TracedGroup, "append", counted)
    return found


def test_a_request_in_parts_is_done_once(
    appended: Counter[str], monkeypatch: pytest.MonkeyPatch, settings: Any
):
    monkeypatch.setattr(parts, "KEPT_APART", 0)
    settings.JOB_SECONDS = 0  # each group is a part
    ours, made = team(), separate_traces(4)
    job = upload(ours, [span for spans in made for span in spans])
    for done in range(1, 4):
        assert attempted(job)
        job.refresh_from_db()
        assert (job.state, job.attempts, len(appended)) == (Job.State.QUEUED, 0, done)
    assert attempted(job)
    job.refresh_from_db()
    assert job.state == Job.State.DONE
    assert set(appended.values()) == {1}
    (file,) = ImportFile.objects.all()
    assert (file.state, file.new_messages, len(file.found)) == ("new", 8, 4)
    assert Session.objects.filter(team=ours).count() == 4


def test_an_attempt_goes_on_after_one_that_failed(
    appended: Counter[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(parts, "KEPT_APART", 0)
    ours, made = team(), separate_traces(4)
    job = upload(ours, [span for spans in made for span in spans])
    once = traces._append_group

    def failing(*given: Any) -> Any:
        if len(appended) == 2:
            monkeypatch.setattr(traces, "_append_group", once)
            raise RuntimeError
        return once(*given)

    monkeypatch.setattr(traces, "_append_group", failing)
    assert not attempted(job)
    assert attempted(job)
    assert set(appended.values()) == {1}
    (file,) = ImportFile.objects.all()
    assert (file.state, file.new_messages, len(file.found)) == ("new", 8, 4)


def test_a_job_hands_its_requests_to_the_one_that_runs(monkeypatch: pytest.MonkeyPatch):
    ours, made = team(), separate_traces(3)
    first = upload(ours, made[0])
    later: list[Callable[[], Job]] = [lambda: upload(ours, made[1]), lambda: upload(ours, made[2])]
    read = together.import_together

    def meanwhile(*given: Any) -> None:
        read(*given)
        if later:
            other = later.pop()()
            assert attempted(other)
            other.refresh_from_db()
            assert (other.state, other.attempts) == (Job.State.QUEUED, 0)

    monkeypatch.setattr(together, "import_together", meanwhile)
    assert attempted(first)
    assert Job.objects.filter(kind=uploads.KIND).get().state == Job.State.DONE
    assert Session.objects.filter(team=ours).count() == 3
    assert Import.objects.get().files.count() == 3


def test_a_large_request_makes_room_for_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts, "KEPT_APART", 0)
    monkeypatch.setattr(parts, "TURN", 0)
    ours, made = team(), separate_traces(4)
    large = upload(ours, [span for spans in made[:3] for span in spans])
    small: list[Job] = []
    once = traces._append_group

    def meanwhile(*given: Any) -> Any:
        if not small:
            small.append(upload(ours, made[3]))
        return once(*given)

    monkeypatch.setattr(traces, "_append_group", meanwhile)
    assert attempted(large)
    large.refresh_from_db()
    assert large.state == Job.State.QUEUED
    assert attempted(small[0])
    small[0].refresh_from_db()
    assert small[0].state == Job.State.DONE, "it has not taken the large one along"
    assert Session.objects.filter(team=ours).count() == 2
    assert attempted(large)
    assert Session.objects.filter(team=ours).count() == 4
