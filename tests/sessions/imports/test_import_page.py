"""Uploads and reports: files are kept until they are read, and nothing is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from sessions.actions.imports import uploads
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.models import Import, ImportFile, Job, Session, SkippedRecord
from sessions.models.record import objects
from tests.sessions.pages import Page, other_team, page_of, signed_in

pytestmark = pytest.mark.django_db

SAMPLE = (
    Path(__file__).parents[1] / "importers" / "samples" / "claude-code" / "claude-code.jsonl"
).read_bytes()
NO_LOG = b'{"hello": 1}'


@pytest.fixture
def client() -> Client:
    return signed_in()


@pytest.fixture
def folder(settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "uploads"


def upload(client: Client, *files: tuple[str, bytes], **fields: str) -> str:
    """The address of the report that an upload leads to."""
    given = [SimpleUploadedFile(name, data) for name, data in files]
    response = client.post("/imports/", {"files": given, **fields})
    assert response.status_code == 302, response.content
    return str(response.headers["Location"])


def work() -> Job:
    """Run the queued import, like a worker's process."""
    job = jobs.claim(Job.objects.get(kind="import", state=Job.State.QUEUED).pk)
    assert job is not None and job.token is not None
    attempt(job.pk, job.token)
    job.refresh_from_db()
    return job


def test_a_large_file_has_no_name_while_it_is_received(
    client: Client, folder: Path, settings, monkeypatch: pytest.MonkeyPatch
):
    """A server that is killed then leaves nothing of it."""
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1
    received = folder.parent / "received"
    received.mkdir()
    settings.FILE_UPLOAD_TEMP_DIR = str(received)
    seen: list[list[Path]] = []
    real = objects.put_chunks

    def put(name: str, chunks: Iterable[bytes]) -> int:
        seen.append(list(received.iterdir()))
        return real(name, chunks)

    monkeypatch.setattr(objects, "put_chunks", put)
    upload(client, ("a.jsonl", SAMPLE))
    assert seen == [[]]
    assert next(folder.iterdir()).read_bytes() == SAMPLE


@pytest.mark.parametrize("url", ["/imports/", "/start/"])
def test_the_agents_that_most_people_have_come_first(client: Client, url: str):
    titles = re.findall(r"<dt>(.*?)</dt>", page_of(client, url).html)
    assert titles[:5] == ["Claude Code", "Codex", "GitHub Copilot CLI", "Cursor", "Gemini CLI"]
    rest = [one for one in titles[5:] if one != "Files of your own"]
    assert rest == sorted(rest, key=str.lower) and "Goose" in rest
    named = page_of(client, url).text.partition("Reads ")[2]
    order = [named.index(one) for one in ("Claude Code", "Codex", "opencode", "Cline", "Aider")]
    assert order == sorted(order)


def test_an_upload_is_kept_asks_for_a_job_and_shows_it(client: Client, folder: Path):
    address = upload(client, ("a.jsonl", SAMPLE), ("b.json", NO_LOG))
    import_run = Import.objects.get()
    assert address == f"/imports/{import_run.pk}/"
    root = folder.parent
    kept = [root / file.stored for file in import_run.files.order_by("pk")]
    assert [path.read_bytes() for path in kept] == [SAMPLE, NO_LOG]
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600, 0o600]
    assert Job.objects.get().payload == {"import": str(import_run.pk), "if_changed": "keep"}
    page = page_of(client, address)
    assert "queued" in page.classes
    assert f'data-topic="job:{import_run.job_id}"' in page.html
    assert f"/jobs/{import_run.job_id}/cancel/" in page.forms
    assert page.title.startswith("queued · Import")


def test_the_job_imports_lets_the_files_go_and_the_report_says_what_came_of_each(
    client: Client, folder: Path
):
    address = upload(client, ("a.jsonl", SAMPLE), ("b.json", NO_LOG))
    job = work()
    assert job.state == Job.State.PARTIAL
    assert (job.result["files"], job.result["refused"], job.done_units) == (2, 1, 2)
    assert list(folder.iterdir()) == []
    page = page_of(client, address)
    found = Session.objects.get()
    assert page.links["Tide table"] == f"/sessions/{found.pk}/"
    assert "not a known agent log" in page.text
    assert "data-topic" not in page.html, "nothing more can come"
    assert page.title.startswith("Import of")
    again = upload(client, ("a.jsonl", SAMPLE))
    assert work().state == Job.State.DONE
    assert "known" in page_of(client, again).text
    assert Session.objects.count() == 1


def test_what_was_not_understood_can_be_looked_at_and_stays_text(client: Client, folder: Path):
    evil = b'{"type":"a-type-of-tomorrow","x":"<script>alert(1)</script>\\u0000"}\n{broken\n'
    address = upload(client, ("a.jsonl", SAMPLE + evil))
    work()
    page = page_of(client, address)
    record = SkippedRecord.objects.get(type="a-type-of-tomorrow")
    assert f"{address}skipped/{record.pk}/" in page.links.values()
    shown = page_of(client, f"{address}skipped/{record.pk}/")
    assert "<script>alert(1)</script>" in shown.text
    assert "<script>alert" not in shown.html
    broken = SkippedRecord.objects.get(reason="malformed")
    assert "{broken" in page_of(client, f"{address}skipped/{broken.pk}/").text
    stranger = signed_in(other_team())
    assert stranger.get(f"{address}skipped/{record.pk}/").status_code == 404
    assert client.get(f"{address}skipped/{record.pk + 99}/").status_code == 404


@pytest.mark.fault("I2")
@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a\x00b", "<b>x</b>.json", "x" * 3000, "/abs.json", "‮gpj.json"]
)
def test_names_are_data_only(client: Client, folder: Path, name: str):
    address = upload(client, (name, NO_LOG))
    below = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.name[32:] for path in below] == ["-0"]
    page_of(client, address)


@pytest.mark.parametrize("name", ["a\x00b", "\ud800.json", ""])
def test_names_that_a_database_refuses_are_mended(name: str, folder: Path):
    class Sent:
        def chunks(self):
            return [b"{}"]

    sent = Sent()
    sent.name = name  # type: ignore[attr-defined]
    team = other_team()
    uploads.begin_upload(team, [sent])  # type: ignore[list-item]
    stored = ImportFile.objects.get().path
    assert stored
    assert "\x00" not in stored
    stored.encode()


def test_the_form_says_what_becomes_of_a_changed_log(client: Client, folder: Path):
    upload(client, ("a.jsonl", SAMPLE))
    work()
    assert "Replace the stored session" in page_of(client, "/imports/").text
    upload(
        client, ("a.jsonl", SAMPLE.replace(b'"role":"user"', b'"role": "user" ')), if_changed="new"
    )
    asked = Job.objects.get(kind="import", state=Job.State.QUEUED)
    assert asked.payload["if_changed"] == "new"


def test_an_upload_without_a_file_says_so_beside_the_field(client: Client, folder: Path):
    response = client.post("/imports/", {})
    assert response.status_code == 422
    page = Page(response.content.decode())
    assert "No file received. Choose at least one." in page.text
    assert 'aria-invalid="true"' in page.html
    assert not Import.objects.exists()
    assert not Job.objects.exists()


def test_more_files_than_a_form_may_hold_are_refused_with_the_limit(client: Client, folder: Path):
    files = [SimpleUploadedFile(str(n), NO_LOG) for n in range(uploads.FILES_AT_ONCE + 1)]
    response = client.post("/imports/", {"files": files})
    assert response.status_code == 400
    assert "100 files" in Page(response.content.decode()).text
    assert not Import.objects.exists()


@pytest.mark.fault("A8")
def test_when_the_database_fails_no_file_is_left_behind(folder: Path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(uploads, "enqueue", full)
    with pytest.raises(OSError, match="disk full"):
        uploads.begin_upload(other_team(), [SimpleUploadedFile("a", NO_LOG)])
    assert list(folder.iterdir()) == []
    assert not Import.objects.exists()


def test_when_no_file_is_a_log_the_job_fails_and_another_try_is_not_offered(
    client: Client, folder: Path
):
    address = upload(client, ("b.json", NO_LOG))
    job = work()
    assert job.state == Job.State.FAILED
    for page in (page_of(client, address), page_of(client, f"/jobs/{job.pk}/")):
        assert "None of the files could be imported" in page.text
        assert f"/jobs/{job.pk}/retry/" not in page.forms


def test_a_cancelled_import_keeps_its_files_and_goes_on_where_it_was(client: Client, folder: Path):
    address = upload(client, ("a.jsonl", SAMPLE))
    job = Job.objects.get()
    client.post(f"/jobs/{job.pk}/cancel/")
    assert f"/jobs/{job.pk}/retry/" in page_of(client, address).forms
    client.post(f"/jobs/{job.pk}/retry/")
    assert work().state == Job.State.DONE
    assert Session.objects.count() == 1


def test_a_payload_that_names_a_foreign_import_is_refused(client: Client, folder: Path):
    upload(client, ("a.jsonl", SAMPLE))
    mine = Job.objects.get()
    Job.objects.filter(pk=mine.pk).update(team=other_team())
    assert work().state == Job.State.FAILED
    assert not Session.objects.exists()


def test_past_imports_are_listed_with_what_they_found(client: Client, folder: Path, tmp_path: Path):
    assert "Nothing has been imported yet" in page_of(client, "/imports/").text
    address = upload(client, ("b.json", NO_LOG))
    work()
    log = tmp_path / "log.jsonl"
    log.write_bytes(SAMPLE)
    call_command("import_logs", str(log), json=True, stdout=StringIO())
    page = page_of(client, "/imports/")
    assert f'href="{address}"' in page.html
    assert "upload" in page.text
    assert "command" in page.text
    assert "1 refused" in page.text
    by_command = Import.objects.get(job=None)
    assert "done" in page_of(client, f"/imports/{by_command.pk}/").classes


def test_a_foreign_import_looks_like_a_missing_one(client: Client, folder: Path):
    address = upload(client, ("a.jsonl", SAMPLE))
    stranger = signed_in(other_team())
    assert stranger.get(address).status_code == 404
    assert address not in page_of(stranger, "/imports/").html
    missing = "/imports/00000000-0000-4000-8000-000000000000/"
    assert client.get(missing).status_code == 404


def test_a_form_from_elsewhere_uploads_nothing(folder: Path):
    client = signed_in()
    client.handler.enforce_csrf_checks = True
    response = client.post("/imports/", {"files": [SimpleUploadedFile("a", NO_LOG)]})
    assert response.status_code == 403
    assert "too old" in Page(response.content.decode()).text
    assert not folder.exists()
