"""Content in object storage: nothing is lost, and what is erased is gone, whatever is away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from contextlab.object_settings import storages
from sessions.actions.erasure import receipts
from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.operations import objects as places
from sessions.actions.operations.stored import SIZE, count_new
from sessions.actions.record.checks import parts
from sessions.models import (
    Blob,
    Erasure,
    ImportFile,
    Job,
    RemovedObject,
    Session,
    StoredBytes,
    Team,
)
from sessions.models.record import blobs, object_cache, objects
from sessions.models.record.blobs import OBJECT_FROM, keep
from sessions.models.record.values import MissingBlob, blocks_of, contents
from tests.conftest import ROOT
from tests.object_storage import ObjectStorage, object_storage
from tests.sessions.erasure.erasing import erased, eraser, talk
from tests.sessions.programs import Program, assert_problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store]

SAMPLES = ROOT / "tests" / "sessions" / "importers" / "samples" / "claude-code"
LARGE = b"".join(b"%d:%d," % (n, n * n * 7919) for n in range(4000))
"""Compresses to more than OBJECT_FROM."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStorage]:
    """A server with a bucket."""
    with object_storage(tmp_path_factory.mktemp("objects") / "swift") as made:
        yield made


@pytest.fixture
def bucket(
    server: ObjectStorage, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ObjectStorage]:
    """Object storage as this process uses it, empty."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    for name in server.names():
        server.client.delete_object(Bucket="lab", Key=name)
    settings.BLOBS = server.url
    settings.DATA_DIR = tmp_path
    settings.STORAGES = storages(server.url)
    objects._failures.cache_clear()
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    yield server
    objects._failures.cache_clear()


def kept(team: Team, *data: bytes) -> list[Blob]:
    """Blobs of some bytes, stored."""
    keep(team.pk, [Blob.of(team.pk, one) for one in data])
    return list(Blob.objects.filter(team=team).order_by("pk"))


def test_large_content_is_an_object_and_small_content_a_row(
    bucket: ObjectStorage, program: Program
) -> None:
    team = program.team
    large, small = kept(team, LARGE, b"short")
    assert large.object_bytes >= OBJECT_FROM and not large.data and not small.object_name
    assert bucket.names() == [f"contextlab/{large.object_name}"]
    keep(team.pk, [Blob.of(team.pk, LARGE)])
    assert len(bucket.names()) == 1, "what the team has is not sent again"
    session = Session.objects.create(team=team, external_id="one")
    assert contents(session, [large.sha, small.sha]) == {large.sha: LARGE, small.sha: b"short"}
    assert program.ask("GET", f"/blobs/{large.sha}").content == LARGE
    sizes = list(Blob.objects.order_by("pk").values_list(SIZE, flat=True))
    assert sizes == [large.object_bytes, len(b"short")]
    assert findings() == []


def test_a_missing_or_changed_object_is_named(bucket: ObjectStorage, program: Program) -> None:
    (blob,) = kept(program.team, LARGE)
    key = f"contextlab/{blob.object_name}"
    session = Session.objects.create(team=program.team, external_id="one")
    bucket.client.put_object(Bucket="lab", Key=key, Body=b"other")
    assert findings() == [f"a blob is what its hash says: blob {blob.sha}"]
    bucket.client.delete_object(Bucket="lab", Key=key)
    assert findings() == [f"a blob has its object: blob {blob.sha}"]
    with pytest.raises(MissingBlob, match=f"1 blobs are missing.*{blob.sha}"):
        contents(session, [blob.sha])
    assert_problem(program.ask("GET", f"/blobs/{blob.sha}"), 404)


def test_without_object_storage_nothing_large_is_acknowledged(
    bucket: ObjectStorage, program: Program
) -> None:
    (blob,) = kept(program.team, LARGE)
    program.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5"})
    said = {"messages": [{"role": "user", "content": LARGE.decode()}]}
    bucket.stop()
    try:
        refused = program.ask("POST", "/sessions/run/messages", said, Idempotency_Key="one")
        assert "Object storage" in assert_problem(refused, 503)["detail"]
        assert refused.headers["Retry-After"]
        assert not Session.objects.get().message_count
        assert_problem(program.ask("GET", f"/blobs/{blob.sha}"), 503)
        upload = program.ask("POST", "/imports?name=a.jsonl", said)
        assert upload.status_code == 503 and not ImportFile.objects.exists()
    finally:
        bucket.start()
    assert (
        program.ask("POST", "/sessions/run/messages", said, Idempotency_Key="one").status_code < 300
    )
    assert Session.objects.get().message_count == 1
    assert findings() == []


def test_copies_on_disk_are_bounded_unreadable_without_the_row_and_no_more_than_copies(
    bucket: ObjectStorage, program: Program, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (blob,) = kept(program.team, LARGE)
    stored = objects.read([blob.object_name])[blob.object_name]
    (copy,) = [path for path in (settings.DATA_DIR / "objects").rglob("*") if path.is_file()]
    assert stored not in copy.read_bytes() and blob.sha not in str(copy)
    bucket.client.delete_object(Bucket="lab", Key=f"contextlab/{blob.object_name}")
    assert objects.read([blob.object_name]) == {blob.object_name: stored}
    copy.write_bytes(b"damaged")
    assert objects.read([blob.object_name]) == {}
    monkeypatch.setattr(object_cache, "FOLDERS", 1)
    monkeypatch.setattr(object_cache, "_path", lambda name: settings.DATA_DIR / "one" / name)
    settings.BLOBS_CACHE_BYTES = 300
    for name in ("a", "b", "c"):
        object_cache.keep(name, bytes(100))
    assert [name for name in "abc" if object_cache.find(name)] in (["b", "c"], ["a", "c"])
    object_cache.keep("d", bytes(301))
    assert object_cache.find("d") is None


def test_an_upload_waits_in_object_storage_and_goes_with_its_import(
    bucket: ObjectStorage, program: Program
) -> None:
    sample = next(SAMPLES.glob("*.jsonl")).read_bytes()
    made = begin_upload(program.team, [BodyFile("a.jsonl", sample)])
    (name,) = bucket.names("contextlab/uploads/")
    assert ImportFile.objects.get().stored == name.removeprefix("contextlab/")
    bucket.stop()
    job = jobs.claim(Job.objects.get(import_run=made).pk)
    attempt(job.pk, job.token)
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED, "it waits for object storage"
    assert ImportFile.objects.get().state == ImportFile.State.WAITING
    bucket.start()
    job = jobs.claim(job.pk)
    attempt(job.pk, job.token)
    job.refresh_from_db()
    assert job.state == Job.State.DONE and Session.objects.get().message_count
    assert bucket.names("contextlab/uploads/") == []


def test_an_erasure_removes_objects_counts_them_and_ends_only_then(
    bucket: ObjectStorage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "OBJECT_FROM", 0)
    talk(program, "run")
    count = len(bucket.names("contextlab/blobs/"))
    assert count == Blob.objects.count() > 20
    asked = eraser(program).ask("DELETE", "/sessions/run").json()
    bucket.stop()
    job = jobs.claim(Job.objects.get(kind="erase").pk)
    attempt(job.pk, job.token)
    assert Erasure.objects.get().finished is None
    assert RemovedObject.objects.count() == count
    bucket.start()
    receipt = json.loads(erased(asked["id"]).receipt)
    assert receipt["rows"]["objects"] == count
    assert bucket.names("contextlab/blobs/") == []
    kept_there = bucket.names("contextlab/erasures/")
    assert kept_there == [f"contextlab/erasures/{asked['id']}.json"]
    receipts.receipts_file().unlink()
    assert len(receipts.kept_lines(receipts.receipts_file())) == 1
    assert findings() == []


def test_what_got_no_row_is_swept_and_nothing_else(bucket: ObjectStorage, program: Program) -> None:
    team = program.team
    (blob,) = kept(team, LARGE)
    lost = objects.blob_name(team.pk, blob.sha)
    objects.put({lost: b"lost", "uploads/lost": b"lost"})
    waits = begin_upload(team, [BodyFile("a.jsonl", b"{}")]).files.get().stored
    now = timezone.now()
    assert places.sweep(now) == 0, "they may still get their rows"
    assert places.sweep(now + timedelta(days=2)) == 2
    assert sorted(bucket.names()) == sorted(f"contextlab/{n}" for n in (blob.object_name, waits))


def test_content_moves_there_and_back_from_wherever_it_stopped(
    bucket: ObjectStorage, program: Program, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "OBJECT_FROM", 0)
    monkeypatch.setattr(places, "AT_ONCE", 4)
    settings.BLOBS = ""
    session = talk(program, "run")
    waiting = begin_upload(program.team, [BodyFile("a.jsonl", b"{}")]).files.get().stored
    before, total = said(session), Blob.objects.count()
    count_new()
    count_new()
    stored = StoredBytes.objects.get().bytes
    settings.BLOBS = bucket.url
    with pytest.raises(KeyboardInterrupt):
        places.move_to_objects(stopping(1))
    assert 0 < Blob.objects.filter(object_name="").count() < total
    assert said(session) == before and findings() == []
    moved = places.move_to_objects(lambda *_: None)
    assert not moved.left and not Blob.objects.filter(object_name="").exists()
    assert len(bucket.names("contextlab/blobs/")) == total == Blob.objects.count()
    assert bucket.names("contextlab/uploads/") == [f"contextlab/{waiting}"]
    assert said(session) == before and findings() == []
    count_new()
    count_new()
    assert StoredBytes.objects.get().bytes == stored

    with pytest.raises(KeyboardInterrupt):
        places.move_to_database(stopping(2))
    gone = Blob.objects.exclude(object_name="").order_by("pk").first()
    assert gone is not None
    body = objects.read([gone.object_name], cached=False)
    objects.remove([gone.object_name])
    assert places.move_to_database(lambda *_: None).left == [gone.sha]
    objects.put(body)
    assert places.move_to_database(lambda *_: None) == places.Moved(1, 0, [])
    assert bucket.names() == [] and Blob.objects.filter(object_name="").count() == total
    settings.BLOBS = ""
    assert said(session) == before and findings() == []
    assert (settings.DATA_DIR / waiting).read_bytes() == b"{}"


def said(session: Session) -> list[Any]:
    """The texts of a session, from the store and not from copies."""
    shutil.rmtree(Path(object_cache._folder()), ignore_errors=True)
    return [(block.sha, block.text) for block in blocks_of(session, with_text=True)]


def stopping(after: int) -> Any:
    """A progress that stops its work, like Ctrl+C."""
    calls = iter(range(after))

    def heard(*_: int) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return heard


def findings() -> list[str]:
    """What a check of the whole store finds."""
    return [str(one) for part in parts("blobs") for one in part.findings]
