"""One job of a team's exporters at a time, and large requests in parts that are not done again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from sessions.actions.imports import parts, together, traces, uploads
from sessions.actions.imports.traced import TracedGroup
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.record.append import link_parents
from sessions.actions.record.measure import measure
from sessions.importers.traces import requests
from sessions.models import Import, ImportFile, Job, Session, Team
from tests.sessions.imports.traced_trees import (
    TREES,
    Spans,
    Traced,
    made_of,
    send,
    stored,
    team,
    text,
)

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


@pytest.fixture
def one_call_per_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_CALLS", 1)


PARTS = [f"OTLP traces, part {number} of 4" for number in range(1, 5)]


@pytest.mark.usefixtures("one_call_per_part")
def test_a_request_in_parts_is_done_once(appended: Counter[str], settings: Any):
    settings.JOB_SECONDS = 0  # an attempt is one part
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
    rows = ImportFile.objects.order_by("pk").values_list("path", "state", "new_messages")
    assert list(rows) == [(part, "new", 2) for part in PARTS]
    assert Session.objects.filter(team=ours).count() == 4
    assert not [*settings.DATA_DIR.glob("uploads/*")]


@pytest.mark.usefixtures("one_call_per_part")
def test_a_part_that_fails_is_tried_alone(appended: Counter[str], monkeypatch: pytest.MonkeyPatch):
    ours, made = team(), separate_traces(4)
    job = upload(ours, [span for spans in made for span in spans])
    append = traces._append_group
    broken = {f"{made[2][0].context.trace_id:032x}"}

    def failing(ours: Team, log: Any, name: str, *given: Any) -> Any:
        if name in broken:
            raise RuntimeError
        return append(ours, log, name, *given)

    monkeypatch.setattr(traces, "_append_group", failing)
    assert not attempted(job)
    assert not attempted(job)
    (rest,) = Job.objects.filter(kind=uploads.KIND).exclude(pk=job.pk)
    assert (rest.attempts, attempted(rest), len(appended)) == (0, True, 3)
    broken.clear()
    assert attempted(job)
    assert set(appended.values()) == {1}
    rows = ImportFile.objects.order_by("pk").values_list("path", "state", "import_run__job")
    first, other = (job.pk,), (rest.pk,)
    assert [row[2:] for row in rows] == [first, first, first, other]
    assert {row[:2] for row in rows} == {(part, "new") for part in PARTS}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("most", [1, 2])
def test_in_parts_the_same_is_stored(tree: str, most: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requests, "MOST_CALLS", most)
    spans, ours = TREES[tree], team()
    assert attempted(upload(ours, spans))
    assert ImportFile.objects.count() > 1
    for parent in link_parents(ours):
        measure(parent)
    assert stored(ours) == made_of([spans])


def test_calls_before_the_last_stored_one_are_written_at_once(
    appended: Counter[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(requests, "MOST_CALLS", 1)
    monkeypatch.setattr(traces, "AT_ONCE", 1)
    made, ours = Traced(), team()
    main = made.begin("invoke_agent", None)
    said = [text("user", "Find the kelp.")]
    for number in range(6):
        answer = text("assistant", f"At pier {number}.")
        made.chat(main, said, answer)
        said += [answer, text("user", "And then?")]
    *calls, last = made.ended()
    assert attempted(upload(ours, [calls[0], calls[3]]))
    assert appended.total() == 2
    assert attempted(upload(ours, [calls[1], calls[2], calls[4], last]))
    assert appended.total() == 5, "two late ones at once, and each of the others"
    assert stored(ours) == made_of([made.ended()])


@pytest.mark.usefixtures("one_call_per_part")
def test_requests_beyond_one_reading_come_after_its_parts(
    appended: Counter[str], monkeypatch: pytest.MonkeyPatch
):
    ours, made = team(), separate_traces(4)
    for some in (made[:2], made[2:]):
        upload(ours, [span for spans in some for span in spans])
    monkeypatch.setattr(together, "MOST_BYTES", 1)
    assert attempted(Job.objects.filter(kind=uploads.KIND).order_by("created")[0])
    assert list(appended) == [f"{spans[0].context.trace_id:032x}" for spans in made]
    paths = ImportFile.objects.order_by("pk").values_list("path", flat=True)
    assert list(paths) == [f"OTLP traces, part {number} of 2" for number in (1, 2, 1, 2)]
    assert Job.objects.get(kind=uploads.KIND).state == Job.State.DONE


def test_ids_that_no_column_holds_leave_their_trace_out(monkeypatch: pytest.MonkeyPatch):
    ours, made = team(), separate_traces(2)
    append, broken = TracedGroup.append, set[str]()

    def failing(group: TracedGroup, *given: Any) -> Any:
        if not broken or group.name in broken:
            broken.add(group.name)
            raise DataError("value too long for type character varying(300)")
        return append(group, *given)

    monkeypatch.setattr(TracedGroup, "append", failing)
    job = upload(ours, [span for spans in made for span in spans])
    assert attempted(job)
    (file,) = ImportFile.objects.all()
    assert (file.state, file.new_messages) == ("new", 2)
    assert "at most 300 characters" in file.problems[0]
    assert "left out for it: 1." in file.problems[0]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite's planner")
def test_no_query_of_a_new_trace_goes_through_the_sessions_of_its_team():
    with CaptureQueriesContext(connection) as asked:
        send(team(), separate_traces(1))
    plans = {}
    with connection.cursor() as cursor:
        for one in asked.captured_queries:
            if one["sql"].startswith("SELECT") and not one["sql"].endswith("LIMIT 1"):
                cursor.execute(f"EXPLAIN QUERY PLAN {one['sql']}")
                plans[one["sql"]] = " ".join(str(row[3]) for row in cursor.fetchall())
    assert len(plans) > 10
    # The index of those that wait for their parents has no others.
    all_of_team = re.compile(r"USING (COVERING )?INDEX session_(?!unlinked)\w+ \(team_id=\?\)")
    assert not {sql for sql, plan in plans.items() if all_of_team.search(plan)}


@pytest.mark.parametrize("encoding", ["protobuf", "JSON"])
def test_a_request_with_too_many_values_is_refused(encoding: str, monkeypatch: pytest.MonkeyPatch):
    ours, request = team(), encode_spans([span for one in separate_traces(9) for span in one])
    data = request.SerializeToString()
    if encoding == "JSON":
        data = MessageToJson(request, indent=None).encode()
    for most, state in ((9, "refused"), (len(data), "new")):
        monkeypatch.setattr(requests, "MOST_VALUES", most)
        run = uploads.begin_upload(ours, [uploads.BodyFile("OTLP traces", data)], actor=None)
        assert run.job and attempted(run.job)
        assert run.files.get().state == state
    (said,) = ImportFile.objects.get(state="refused").problems
    assert "fewer spans" in said


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


@pytest.mark.usefixtures("one_call_per_part")
def test_a_large_request_makes_room_for_others(monkeypatch: pytest.MonkeyPatch):
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
