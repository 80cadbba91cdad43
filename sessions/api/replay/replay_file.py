"""A replay in one HTML file, which works from the disk: no server, nothing fetched.

The file holds the script and the styles of the pages, allowed by their hashes and nothing else, and
what the script would ask a server for: lines of a name, a tab and JSON, compressed with gzip and
written in base64, whose characters mean nothing in HTML. `src/replay/file/answers.ts` reads
them.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import msgspec
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe

from compaction.context import wire
from compaction.redaction.redact import Masker
from compaction.redaction.together import Masks, masked_in_order
from compaction.redaction.values import masked_block
from sessions.access import run_named
from sessions.actions.assessments.session_verdicts import verdict_on_session
from sessions.actions.imports.export import without_cut_word
from sessions.actions.live.handing_out.recited import recited_by_step
from sessions.api.replay.entries import Outlines, content_of, printable
from sessions.api.replay.following import events_json, manifest_json
from sessions.api.replay.heads import run_label, run_name
from sessions.models import Run, Session
from sessions.models.record import manifest as manifests
from sessions.models.record import tail
from sessions.models.record.shown_runs import shown_origin
from sessions.models.record.values import contents

AT_ONCE = 200
LARGEST = 256 * 1024 * 1024
"""Bytes of lines in a file: a browser holds them in memory."""

_PLACE = "data-goes-here"
_CONTENT = "content "
"""How the names of lines with the content of a block begin."""
_NOT_MASKED = frozenset(
    {"id", "sha", "kind", "kinds", "type", "role", "origin", "state", "basis", "action"}
)
"""Fields of lines that hold our own words and numbers."""

Lines = Iterator[tuple[str, Any]]


class PageTooLarge(Exception):
    """The session has more content than a browser should hold."""


class NotBuilt(Exception):
    """The script and the styles of the pages are not there."""


def shown_run(session: Session, named: str = "") -> Run:
    """The run that a file shows: the one with that name, or the one that the page opens with.
    Raises Http404."""
    return run_named(session, named or shown_origin(session))


def replay_file(session: Session, run: Run, masker: Masker | None) -> Iterator[bytes]:
    """Yield the file: a run of a session, and the recorded one to compare with.

    With a masker every text is masked. Raises PageTooLarge, NotBuilt, MissingBlob, DamagedBlob.
    """
    script, style = _built("js"), _built("css")
    context = {
        "session": _converted(session.external_id, masker),
        "title": _converted(session.title or session.external_id, masker),
        "run": _converted(run_label(run), masker),
        "masked": masker is not None,
        "version": version("contextlab"),
        "written": timezone.now(),
        "script": mark_safe(f"<script type=module>{script}</script>"),  # noqa: S308
        "style": mark_safe(f"<style>{style}</style>"),  # noqa: S308 (our own build)
        "policy": mark_safe(_policy(script, style)),  # noqa: S308 (quotes of one kind)
        "place": _PLACE,
    }
    page = render_to_string("replay/file.html", context)
    before, _, after = page.partition(_PLACE)
    yield before.encode()
    lines = _lines(session, run)
    made = masked_in_order(masker, lines, _made) if masker else (_made(None, one) for one in lines)
    yield from _packed(made)
    yield after.encode()


def _built(kind: str) -> str:
    """The script or the styles. Raises NotBuilt."""
    folder = settings.BUILT_PAGES
    try:
        text = (folder / f"replay-file.{kind}").read_text()
    except FileNotFoundError:
        raise NotBuilt(
            "The pages are not built. Run `npm --prefix frontend run build`, then try again."
        ) from None
    text = f"\n{text.strip()}\n"
    assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE), "it would end early"
    return text


def _policy(script: str, style: str) -> str:
    """Nothing may run or load but this script, these styles, and images in the styles."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    """A source expression of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _packed(lines: Lines) -> Iterator[bytes]:
    """Lines as gzip in base64. Raises PageTooLarge."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    rest, size = b"", 0
    for name, value in lines:
        json = value if isinstance(value, bytes) else msgspec.json.encode(value)
        size += len(json)
        if size > LARGEST:
            raise PageTooLarge(
                f"The session has more than {LARGEST >> 20} MB of content, too much for one page. "
                "Export it as JSON lines instead."
            )
        rest += packer.compress(b"%b\t%b\n" % (name.encode(), json))
        whole = len(rest) // 3 * 3
        if whole:
            yield base64.b64encode(rest[:whole])
            rest = rest[whole:]
    yield base64.b64encode(rest + packer.flush())


def _made(masker: Masks | None, line: tuple[str, Any]) -> tuple[str, Any]:
    """A line as it is written; that of a content is still a block."""
    name, value = line
    if not name.startswith(_CONTENT):
        return name, _converted(value, masker)
    return name, content_of(masked_block(masker, value) if masker else value)


def _lines(session: Session, shown: Run) -> Lines:
    origin = shown.origin
    runs = {"recorded": run_named(session, "recorded")}
    if origin != Run.Origin.RECORDED:
        runs[run_name(shown) if origin == Run.Origin.SIMULATED else origin] = shown
    yield "props", _props(session, next(reversed(runs)), origin)
    yield "notes", {"notes": _notes(session)}
    shas: dict[str, None] = {}
    for name, run in runs.items():
        for kind, line in _run(session, run, [run_name(one) for one in runs.values()]):
            yield f"{kind} {name}", line
        for i, outline in enumerate(_outlines(session, run)):
            shas |= dict.fromkeys([outline["sha"], *(one["sha"] for one in outline["versions"])])
            yield f"entry {name} {i}", {"i": i, **outline}
        for step, ending in _recited(session, run):
            yield f"recitation {name} {step}", ending
    yield from _contents(session, list(shas))


def _props(session: Session, usual: str, origin: str) -> dict[str, Any]:
    """What the page gets besides addresses."""
    verdict = verdict_on_session(session, managed=origin == Run.Origin.MANAGED)
    found: dict[str, Any] = {"default_run": usual}
    if verdict is not None:
        # The page of a compaction is not in the file: no address.
        proofs = tuple((words, address and "") for words, address in verdict.proofs)
        found["verdict"] = asdict(replace(verdict, proofs=proofs))
    return found


def _notes(session: Session) -> list[dict[str, Any]]:
    return [
        {
            "id": note.pk,
            "step": note.step,
            "text": note.text,
            "author": note.author_name,
            "created": note.created.isoformat(),
            "deletable": False,
        }
        for note in session.step_notes.order_by("step", "pk")
    ]


def _run(session: Session, run: Run, names: list[str]) -> Lines:
    """What belongs to a run as a whole. Nothing in a file goes on: it is not live."""
    manifest = msgspec.json.decode(manifest_json(session, run, packed=True))
    manifest["session"] |= {"live": False}
    manifest["runs"] = [one for one in manifest["runs"] if one["id"] in names]
    yield "manifest", manifest
    yield "events", msgspec.json.decode(events_json(run))
    count = manifest["entries"]["count"]
    if later := manifest["later"]:
        count += len(later["entries"]["position"])
    yield "previews", manifests.previews(session, run, 0, count)
    names_of: dict[str, int] = {}
    of = [names_of.setdefault(name, len(names_of)) for name in manifests.sources(run)]
    yield "sources", {"names": [printable(name) for name in names_of], "of": of}


def _outlines(session: Session, run: Run) -> Iterator[dict[str, Any]]:
    outlines = Outlines(session, run)
    start = 0
    while standing := manifests.entries_between(session, run, start, start + AT_ONCE):
        outlines.read(row for one in standing if (row := one.block or one.replacement))
        yield from map(outlines.outline, standing)
        start += AT_ONCE


def _recited(session: Session, run: Run) -> Iterator[tuple[int, dict[str, Any]]]:
    """The texts that the policy recited."""
    recited = tail.figures(tail.stored(run)).steps["recited"]
    steps = [step for step, tokens in enumerate(recited, 1) if tokens]
    for step, end in recited_by_step(session, run, steps) if steps else ():
        yield step, {"step": step, "tokens": end.tokens, "text": printable(end.text)}


def _contents(session: Session, shas: list[str]) -> Lines:
    for start in range(0, len(shas), AT_ONCE):
        for sha, data in contents(session, shas[start : start + AT_ONCE]).items():
            block: wire.WireBlock = wire.decode(data)
            yield f"{_CONTENT}{sha}", block


def _converted(value: Any, masker: Masks | None) -> Any:
    """A value without lone surrogates, its texts masked."""
    if isinstance(value, str):
        return printable(masker.mask(without_cut_word(value)) if masker else value)
    if isinstance(value, (list, tuple)):
        return [_converted(one, masker) for one in value]
    if isinstance(value, dict):
        own = {name for name in _NOT_MASKED & value.keys() if not isinstance(value[name], dict)}
        return {
            name: one if name in own else _converted(one, masker) for name, one in value.items()
        }
    return value
