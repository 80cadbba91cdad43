"""Exports of sessions to download, written by a process of their own.

A process reads the session and writes a file that has no name any more, which the server then
sends: nothing that content decides runs in the server, and the process can be killed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Literal
from uuid import UUID

import msgspec
from django.conf import settings
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Query, Router

from compaction.redaction.redact import Masker
from sessions.access import actor_of, allowed, may_write, session_of
from sessions.actions.accounts import audit
from sessions.actions.archives.unpack import open_family
from sessions.actions.imports.export import export as lines_of
from sessions.actions.web import forks
from sessions.actions.web.apart import NotInTime, Pool
from sessions.api.replay.heads import run_label
from sessions.api.replay.replay_file import (
    NotBuilt,
    PageTooLarge,
    replay_file,
    shown_run,
)
from sessions.api.web.problems import Refusal
from sessions.models import Session
from sessions.models.masking.masking import rules_of
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import ContentErased, MissingBlob
from sessions.models.web.shown import as_stored

log = logging.getLogger(__name__)

Format = Literal["jsonl", "html"]

SECONDS = 50.0
"""How long an export may take: proxies give up on a silent server after 60 seconds."""
LARGEST = 1024 * 1024 * 1024
"""Bytes of a file."""
PROCESSES, WAIT_SECONDS = 3, 3.0
"""Exports at once (a team has one fewer at most), and how long one waits for its turn."""

router = Router(tags=["Sessions"])
ONLY_MASKED = (
    "The team shows content masked. Export it masked; owners can export JSON lines without masks."
)
_places = Pool(PROCESSES)


class ExportOrder(msgspec.Struct):
    """An export as its process is asked for it; `path` is the file, which it opens and unlinks."""

    session: UUID
    format: Format
    run: str
    masked: bool
    path: str


class Written(msgspec.Struct):
    """What the process wrote: its bytes, and what it masked by kind; or why it wrote nothing.
    `unbuilt` is why the server cannot write it yet."""

    size: int = 0
    masked: dict[str, int] = {}
    problem: str = ""
    unbuilt: str = ""
    failed: str = ""


class Download(FileResponse):
    """A file to save, which no browser renders and no cache stores."""

    block_size = 1 << 16

    def __init__(self, file: IO[bytes], name: str) -> None:
        headers = {
            "Cache-Control": "no-store",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        }
        kind = "application/octet-stream"
        super().__init__(
            file, as_attachment=True, filename=name, content_type=kind, headers=headers
        )


@router.get(
    "sessions/{path:session_id}/export",
    url_name="export",
    openapi_extra={
        "responses": {
            200: {
                "content": {
                    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
                }
            }
        }
    },
)
def export(
    request: HttpRequest,
    session_id: str,
    form: Format = Query("jsonl", alias="format", description="jsonl: all; html: the replay"),
    masked: bool = Query(True, description="mask secrets and personal data"),
    run: str = Query("", description="of the replay; without it, the one that its page shows"),
) -> HttpResponseBase:
    """Download a session: as JSON lines with its sub-agents, or as a replay in one HTML page.

    An import of the JSON lines makes the same session; with `masked=false` it is equal in every
    row. If the team shows content masked, only its owners (JSON lines) and programs that write can
    leave it unmasked. Reviews of compactions that are still under review are left out. The page
    works from the disk, without a server. 503 if it takes more than 50 s, too many are under way,
    or the pages are not built.
    """
    return download(request, session_of(request, session_id), form, run, masked=masked)


def download(
    request: HttpRequest, session: Session, form: Format, run: str, *, masked: bool
) -> Download:
    """The response with an export, noted in the audit log. Raises Refusal, ContentErased, and
    Http404 for an unknown run."""
    if not masked and not may_unmask(request, session, form):
        raise Refusal(403, "Shown masked", ONLY_MASKED)
    if session.content_erased is not None:
        raise ContentErased(session)
    open_family(session)
    shown = run_label(shown_run(session, run)) if form == "html" else ""
    with as_stored():  # a masked export has masks of its own
        file = _file(session, form, run, masked=masked)
    try:
        actor, detail = actor_of(request), {"format": form, "masked": masked}
        audit.note(session.team, actor, "export.made", session.external_id, **detail)
        return Download(file, _name(session, form, shown, masked=masked))
    except BaseException:
        file.close()
        raise


def may_unmask(request: HttpRequest, session: Session, form: Format = "jsonl") -> bool:
    """Whether the requester can export a session as it is stored."""
    if not session.team.show_masked or may_write(request):
        return True
    return form == "jsonl" and allowed(request, session.team, "erase")


def _name(session: Session, form: Format, run: str, *, masked: bool) -> str:
    """A file name with the session, the run, the date, and whether it is masked."""
    what = ["replay" if form == "html" else "session", session.external_id[-60:], run]
    what += [f"{timezone.now():%Y-%m-%d}", "masked" if masked else "unmasked"]
    plain = [re.sub(r"[^A-Za-z0-9.-]+", "-", one).strip("-.") for one in what]
    return f"{'-'.join(filter(None, plain))}.{form}"


def _file(session: Session, form: Format, run: str, *, masked: bool) -> IO[bytes]:
    """The file, without a name, ready to be read. Raises Refusal."""
    try:
        _places.take(session.team_id, WAIT_SECONDS)
    except NotInTime:
        said = "Other exports are being written. Try again in a few seconds."
        raise Refusal(503, "Busy", said, headers={"Retry-After": "5"}) from None
    try:
        folder = settings.DATA_DIR / "exports"
        folder.mkdir(mode=0o700, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder)
        file = os.fdopen(handle, "rb")
        try:
            written = _written(ExportOrder(session.pk, form, run, masked, path))
        except BaseException:
            file.close()
            raise
        finally:
            Path(path).unlink(missing_ok=True)
    finally:
        _places.put(session.team_id, None)
    if written.unbuilt:
        file.close()
        raise Refusal(503, "Pages not built", written.unbuilt, headers={"Retry-After": "60"})
    if written.problem:
        file.close()
        raise Refusal(413, "Cannot be exported", written.problem)
    return file


def _written(wanted: ExportOrder) -> Written:
    """What the process answers. Raises Refusal."""
    end = time.monotonic() + SECONDS
    try:
        forked = forks.Forked(f"{__name__}.work")
    except OSError:
        raise _failed("its process did not start") from None
    calls = Connection(os.dup(forked.input), readable=False)
    answers = Connection(os.dup(forked.output), writable=False)
    try:
        calls.send_bytes(msgspec.json.encode(wanted))
        if not answers.poll(max(end - time.monotonic(), 0)):
            raise Refusal(
                503,
                "Not done in time",
                f"The export took longer than {SECONDS:g} s and was stopped. Use `contextlab "
                "export` on the server, which takes as long as it needs.",
                headers={"Retry-After": "60"},
            )
        written = msgspec.json.decode(answers.recv_bytes(), type=Written)
    except (EOFError, OSError):
        raise _failed("its process ended") from None
    finally:
        calls.close()
        answers.close()
        forked.end()
    if written.failed:
        raise _failed(written.failed)
    return written


def _failed(why: str) -> Refusal:
    log.error("an export failed: %s", why)
    said = f"The export failed ({why}). Try again; `contextlab verify` checks what is stored."
    return Refusal(500, "The export failed", said)


# In the other process


def work(given: int, taken: int) -> None:
    """Write one export; runs in the other process."""
    calls, answers = Connection(given, writable=False), Connection(taken, readable=False)
    with contextlib.suppress(EOFError):
        wanted = msgspec.json.decode(calls.recv_bytes(), type=ExportOrder)
        answers.send_bytes(msgspec.json.encode(write(wanted)))


def write(wanted: ExportOrder) -> Written:
    """Write an export into its file."""
    try:
        return _write(wanted)
    except NotBuilt as error:
        return Written(unbuilt=str(error))
    except (PageTooLarge, MissingBlob, DamagedBlob) as error:
        return Written(problem=str(error))
    except Exception as error:  # noqa: BLE001 (the message may quote content)
        return Written(failed=type(error).__name__)


def _write(wanted: ExportOrder) -> Written:
    with Path(wanted.path).open("wb") as file:
        Path(wanted.path).unlink()  # whatever ends now, nothing stays on the disk
        session = Session.objects.select_related("team", "policy_version__policy").get(
            pk=wanted.session
        )
        masker = Masker(rules_of(session.team_id)) if wanted.masked else None
        size = 0
        for piece in _pieces(session, wanted, masker):
            size += len(piece)
            if size > LARGEST:
                raise PageTooLarge(
                    f"The session has more than {LARGEST >> 20} MB. Use `contextlab export` on the "
                    "server."
                )
            file.write(piece)
    return Written(size, masker.masked if masker else {})


def _pieces(session: Session, wanted: ExportOrder, masker: Masker | None) -> Iterator[bytes]:
    if wanted.format == "html":
        return replay_file(session, shown_run(session, wanted.run), masker)
    lines = lines_of(session, masker, pending_reviews=False)
    return (json.dumps(line).encode() + b"\n" for line in lines)
