"""Import: read files, store their sessions, and report what was new and skipped, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from django.db import transaction

from sessions import importers
from sessions.actions.assessments import assess
from sessions.actions.assessments.assessments import outdate
from sessions.actions.record.append import append, link_parents
from sessions.actions.record.measure import measure
from sessions.actions.record.prepare import Count
from sessions.actions.search import indexing
from sessions.importers import records
from sessions.models import Blob, Import, ImportFile, Job, SkippedRecord, Team
from sessions.models.record.blobs import sha256

FILE_LIMIT = 256 * 1024 * 1024
"""Maximum size of a file in bytes, because it is read into memory."""

KEPT_PER_TYPE = 200
"""Maximum skipped records per type whose bytes are kept; all are counted."""

SESSIONS_NAMED = 200
"""Maximum sessions of a file linked in its report."""

Progress = Callable[[int, int], None]
"""Called with files done and total."""


def files_under(paths: Iterable[Path]) -> Iterator[Path]:
    """All files at or below the given paths, in a stable order. Raises OSError for unreadable
    folders."""
    for path in paths:
        if path.is_dir():
            next(path.iterdir(), None)  # rglob would silently find nothing
            yield from sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
        else:
            yield path


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def begin_import(team: Team, files: Iterable[tuple[str, str, int]], job: Job | None) -> Import:
    """Create an import with its files waiting; each is (display name, path on disk, bytes)."""
    with transaction.atomic():
        import_run = Import.objects.create(team=team, job=job)
        ImportFile.objects.bulk_create(
            [
                ImportFile(import_run=import_run, path=name[:1000], stored=stored, size=size)
                for name, stored, size in files
            ]
        )
    return import_run


def run_import(import_run: Import, count: Count, progress: Progress) -> None:
    """Import every waiting file; unreadable ones are refused with a sentence.

    Files are imported completely or not at all, so an interrupted import can continue.
    """
    files = list(import_run.files.order_by("pk"))
    for done, file in enumerate(files):
        progress(done, len(files))
        if file.state == ImportFile.State.WAITING:
            import_file(import_run.team, file, count)
    for parent in link_parents(import_run.team):
        measure(parent)
    assess.ask_all(import_run.team)
    indexing.ask(import_run.team)
    progress(len(files), len(files))


def import_file(team: Team, file: ImportFile, count: Count) -> None:
    """Parse one file and store its sessions; record the result on its row."""
    try:
        log = _read(Path(file.stored), file.path)
    except (importers.NotALog, OSError) as error:
        file.state = ImportFile.State.REFUSED
        file.problems = [_sentence(error)]
        file.save()
        return
    created = False
    for session in log.sessions:
        appended = append(team, session, count, source=log.format)
        created = created or appended.created
        if len(file.found) < SESSIONS_NAMED:
            file.found.append(str(appended.session.pk))
        file.new_messages += appended.messages
        if not appended.session.measured:
            measure(appended.session)
            outdate(appended.session)
    _report(file, log, created)
    with transaction.atomic():
        file.save()
        _keep_skipped(team, file, log.skipped)


def _read(path: Path, name: str) -> records.Log:
    size = path.stat().st_size
    if size > FILE_LIMIT:
        raise importers.NotALog(
            f"The file has {size:,} bytes; the limit is {FILE_LIMIT:,}. Split it by session."
        )
    return importers.parse(path.read_bytes(), name)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return f"The file cannot be read: {reason}. Check that it exists and is readable."
    return str(error)


def _report(file: ImportFile, log: records.Log, created: bool) -> None:
    counts = importers.counts(log)
    file.format = log.format
    file.sessions = len(counts["sessions"])
    file.messages = counts["messages"]
    file.calls = counts["calls"]
    file.usage_calls = counts["usage_calls"]
    file.tool_calls = counts["tool_calls"]
    file.compactions = counts["compactions"]
    file.skipped = sum(counts["skipped"].values())
    file.problems = log.problems
    if created:
        file.state = ImportFile.State.NEW
    else:
        file.state = ImportFile.State.GROWN if file.new_messages else ImportFile.State.KNOWN


def _keep_skipped(team: Team, file: ImportFile, skipped: list[records.Skipped]) -> None:
    """Count skipped records by type and reason; keep the bytes of unknown ones."""
    grouped: dict[tuple[str, str], list[records.Skipped]] = defaultdict(list)
    for record in skipped:
        grouped[record.type[:120], record.reason].append(record)
    rows, blobs = [], {}
    for (type_, reason), group in grouped.items():
        kept = group[:KEPT_PER_TYPE] if reason != "not context" else []
        lines = []
        for record in kept:
            sha = sha256(record.raw)
            blobs[sha] = record.raw
            lines.append([record.line, sha])
        rows.append(
            SkippedRecord(file=file, type=type_, reason=reason, count=len(group), lines=lines)
        )
    known = set(Blob.objects.filter(team=team, sha__in=list(blobs)).values_list("sha", flat=True))
    Blob.objects.bulk_create(
        [Blob.of(team.pk, raw, sha) for sha, raw in blobs.items() if sha not in known],
        ignore_conflicts=True,
    )
    SkippedRecord.objects.bulk_create(rows)


def report(import_run: Import) -> dict[str, object]:
    """The report of an import for --json and the import page: totals and files.

    Counts include what the store knew before; `new_messages` were added.
    """
    files = [
        {
            "path": file.path,
            "format": file.format,
            "state": file.state,
            "sessions": file.sessions,
            "messages": file.messages,
            "new_messages": file.new_messages,
            "calls": file.calls,
            "usage_calls": file.usage_calls,
            "tool_calls": file.tool_calls,
            "compactions": file.compactions,
            "skipped": file.skipped,
            "problems": file.problems,
        }
        for file in import_run.files.order_by("pk")
    ]
    totals = ("sessions", "messages", "new_messages", "calls", "skipped")
    return {name: sum(int(file[name]) for file in files) for name in totals} | {"files": files}
