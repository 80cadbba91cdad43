"""Sessions whose logs contain no id: two files of one name are two sessions, and a file that grew,
moved or is imported again is still the same session."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from compaction.tokens import counted
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.record.append import append_all
from sessions.importers import IMPORTERS, parse
from sessions.models import Import, Job, Message, Session
from sessions.models.record.sessions import SOURCE_LIVE
from tests.sessions.pages import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]

Lines = list[dict[str, Any]]


def of_pi(*texts: str) -> Lines:
    header = {"type": "session", "cwd": "/", "timestamp": "2026-03-01T00:00:00Z"}
    return [header, *({"type": "message", "message": said(*one)} for one in enumerate(texts))]


def of_codex(*texts: str) -> Lines:
    messages = ({"type": "message", **said(*one)} for one in enumerate(texts))
    return [{"type": "response_item", "payload": message} for message in messages]


def of_claude_code(*texts: str) -> Lines:
    ids = [None, *("/".join(texts[:count]) for count in range(1, len(texts) + 1))]
    return [{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}] + [
        {"type": one["role"], "uuid": ids[number + 1], "parentUuid": ids[number], "message": one}
        for number, one in enumerate(said(*one) for one in enumerate(texts))
    ]


def said(number: int, text: str) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": [{"type": "text", "text": text}]}


FORMATS: dict[str, Callable[..., Lines]] = {
    "pi": of_pi,
    "codex-rollout": of_codex,
    "claude-code": of_claude_code,
}
TIDES, FERRY = ("Which tide?", "High.", "When?"), ("Which ferry?", "The first.")


@pytest.fixture(params=["command", "upload"])
def bring(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Callable[..., Import]:
    """Import files (path and lines) by the command or by an upload, and return the import."""
    settings.DATA_DIR = tmp_path / "data"

    def by_command(*files: tuple[str, Lines]) -> Import:
        paths = [tmp_path / path for path, _ in files]
        for path, (_, lines) in zip(paths, files, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text(lines))
        call_command("import_logs", *map(str, paths), json=True, stdout=StringIO())
        return Import.objects.latest("created")

    def by_upload(*files: tuple[str, Lines]) -> Import:
        given = [SimpleUploadedFile(path, text(lines)) for path, lines in files]
        assert signed_in().post("/imports/", {"files": given}).status_code == 302
        job = jobs.claim(Job.objects.get(kind="import", state=Job.State.QUEUED).pk)
        assert job is not None and job.token is not None
        attempt(job.pk, job.token)
        return Import.objects.latest("created")

    return by_command if request.param == "command" else by_upload


def text(lines: Lines) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def stored() -> list[list[str]]:
    """The texts of each session, the first messages in order."""
    messages = Message.objects.order_by("seq")
    return sorted(
        [block.preview for one in messages.filter(session=session) for block in one.blocks.all()]
        for session in Session.objects.all()
    )


def states(brought: Import) -> list[str]:
    return [file.state for file in brought.files.order_by("pk")]


@pytest.mark.parametrize("log_format", FORMATS)
def test_two_files_of_one_name_are_two_sessions(
    bring: Callable[..., Import], log_format: str
) -> None:
    lines = FORMATS[log_format]
    brought = bring(("x/run.jsonl", lines(*TIDES)), ("y/run.jsonl", lines(*FERRY)))
    assert [file.format for file in brought.files.all()] == [log_format] * 2
    assert (states(brought), stored()) == (["new", "new"], [[*FERRY], [*TIDES]])


@pytest.mark.parametrize("log_format", ["pi", "codex-rollout"])  # messages of the other have ids
def test_equal_prompts_with_different_responses_are_two_sessions(
    bring: Callable[..., Import], log_format: str
) -> None:
    lines, other = FORMATS[log_format], (TIDES[0], "Low.")
    files = ("x/run.jsonl", lines(*TIDES)), ("y/run.jsonl", lines(*other))
    assert states(bring(*files)) == ["new", "new"]
    assert states(bring(*reversed(files))) == ["known", "known"]
    grown = ("z/run.jsonl", lines(*other, "Sure?"))
    assert states(bring(grown)) == ["grown"]
    assert stored() == [[*TIDES], [*other, "Sure?"]]


def test_one_prompt_sent_at_two_times_is_two_sessions(bring: Callable[..., Import]) -> None:
    def at(minute: int) -> Lines:
        header, *messages = of_pi(TIDES[0])
        return [header, *(one | {"timestamp": f"2026-03-01T00:{minute}:00Z"} for one in messages)]

    brought = bring(("x/run.jsonl", at(10)), ("y/run.jsonl", at(20)))
    assert (states(brought), stored()) == (["new", "new"], [[TIDES[0]], [TIDES[0]]])
    assert states(bring(("z/run.jsonl", at(10)))) == ["known"]


@pytest.mark.parametrize("log_format", FORMATS)
def test_a_file_that_grew_moved_or_is_unchanged_is_the_same_session(
    bring: Callable[..., Import], log_format: str
) -> None:
    lines = FORMATS[log_format]
    for count in range(1, len(TIDES) + 1):
        bring(("x/run.jsonl", lines(*TIDES[:count])))
    brought = bring(("x/run.jsonl", lines(*TIDES)), ("moved/run.jsonl", lines(*TIDES)))
    assert (states(brought), stored()) == (["known", "known"], [[*TIDES]])


@pytest.mark.parametrize("log_format", FORMATS)
def test_a_session_that_an_earlier_release_named_is_continued(
    bring: Callable[..., Import], log_format: str
) -> None:
    lines = FORMATS[log_format]
    (before,) = IMPORTERS[log_format].read(text(lines(*TIDES[:2])), "run.jsonl").sessions
    before.external_id, before.former_ids = "run", ()
    append_all(local_team(), [before], counted, source=log_format)
    named = {"external_id": "run/a", "parent_external_id": "run"}
    child = Session.objects.create(team=local_team(), **named)
    brought = bring(("y/run.jsonl", lines(*FERRY)), ("x/run.jsonl", lines(*TIDES)))
    assert states(brought) == ["new", "grown"]
    child.refresh_from_db()
    assert Session.objects.get(external_id=child.parent_external_id).message_count == len(TIDES)
    child.delete()
    assert stored() == [[*FERRY], [*TIDES]]


def test_names_of_earlier_releases_are_known() -> None:
    (one,) = parse(text(of_pi(*TIDES)), "x/run.jsonl").sessions
    assert one.external_id.startswith("run-")
    assert one.former_ids[1:] == ("run", "x/run.jsonl")


def test_a_live_session_keeps_the_id_that_its_agent_sends(bring: Callable[..., Import]) -> None:
    (live,) = IMPORTERS["pi"].read(text(of_pi(*TIDES[:2])), "run.jsonl").sessions
    live.external_id, live.former_ids = "run", ()
    append_all(local_team(), [live], counted, source=SOURCE_LIVE)
    assert states(bring(("x/run.jsonl", of_pi(*TIDES)))) == ["new"]
    assert Session.objects.get(external_id="run").message_count == 2
