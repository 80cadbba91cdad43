"""The store is checked in the background, a slice at a time, and the result is shown."""

from __future__ import annotations

import uuid

import pytest

from contextlab.operations import doctor
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import attempts, jobs
from sessions.actions.record import verify
from sessions.models import Blob, Job
from tests.sessions.pages import signed_in

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def blobs(monkeypatch: pytest.MonkeyPatch) -> list[Blob]:
    """Three blobs, one of them damaged, each read by a slice of its own."""
    monkeypatch.setattr(verify.checks, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(verify, "SLICE_SECONDS", 0)
    made = [Blob.of(local_team().pk, data) for data in (b"one", b"two", b"three")]
    made[1].data = b"changed"
    return list(Blob.objects.bulk_create(made))


def run_all() -> list[uuid.UUID]:
    """Run the check to its end, each of its jobs as a worker would; the ids of the jobs."""
    ran: list[uuid.UUID] = []
    while job := Job.objects.filter(kind="verify", state=Job.State.QUEUED).first():
        ran.append(job.id)
        claimed = jobs.claim(job.id)
        assert claimed is not None and claimed.token is not None
        assert attempts.attempt(job.id, claimed.token)
    return ran


def test_it_goes_on_where_it_stopped(blobs: list[Blob]) -> None:
    assert verify.last_check() is None
    assert verify.ask().id == verify.ask().id
    assert len(run_all()) == 5, "one for each blob, one for the audit log, and one for the rest"
    job = Job.objects.get(kind="verify")
    assert (job.state, job.result["rows"], job.result["findings"]) == ("partial", 3, 1)
    assert job.result["named"] == [f"a blob is what its hash says: blob {blobs[1].sha}"]


def test_the_result_is_shown_on_the_page_and_by_doctor(blobs: list[Blob]) -> None:
    client = signed_in()
    assert "store-check" not in client.get("/jobs/").content.decode()
    assert doctor.LOOKS["store"]()[0] == doctor.OK
    verify.ask()
    assert "running since" in doctor.LOOKS["store"]()[1]
    run_all()
    state, text = doctor.LOOKS["store"]()
    assert state == doctor.FAILED
    assert "1 finding" in text
    page = client.get("/jobs/").content.decode()
    assert 'id="store-check"' in page
    assert "1 finding" in page
    Job.objects.filter(kind="verify").update(result={"rows": 3, "findings": 0, "named": []})
    assert doctor.LOOKS["store"]()[0] == doctor.OK
    assert "nothing wrong in 3 rows" in client.get("/jobs/").content.decode()


def test_a_check_that_failed_is_no_finding(db: None) -> None:
    verify.ask()
    Job.objects.update(state=Job.State.CANCELLED)
    assert doctor.LOOKS["store"]()[0] == doctor.OK
    assert "run `contextlab verify`" in doctor.LOOKS["store"]()[1]
