"""Import: read files, store their sessions, and report what was new and skipped, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from django.db import DataError, transaction

from sessions import importers
from sessions.actions.archives.unpack import open_named
from sessions.actions.assessments import assess
from sessions.actions.assessments.assessments import outdate
from sessions.actions.imports.changed import TOO_LONG, IfChanged, ImportedSession, append_logs
from sessions.actions.imports.opened import is_archive, logs_in, read_log
from sessions.actions.imports.restored import COPY, restore
from sessions.actions.imports.traces import append_traces
from sessions.actions.masking.incoming import incoming
from sessions.actions.record.append import link_parents
from sessions.actions.record.measure import measure
from sessions.actions.record.prepare import Count
from sessions.actions.search import indexing
from sessions.importers import records
from sessions.importers.bundles import is_event, name_of
from sessions.models import Blob, Import, ImportFile, Job, Session, SkippedRecord, Team
from sessions.models.record import objects
from sessions.models.record.blobs import keep, sha256

KEPT_PER_TYPE = 200
"""Maximum skipped records per type whose bytes are kept; all are counted."""

SESSIONS_NAMED = 200
"""Maximum sessions of a file linked in its report."""

Progress = Callable[[int, int], None]
"""Called with files done and total."""


def files_under(paths: Iterable[Path]) -> Iterator[Path]:
    """All files at or below the given paths, in a stable order; folders that are one log stay
    whole. Raises OSError for unreadable folders."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        next(path.iterdir(), None)  # rglob would silently find nothing
        files = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
        events = [file for file in files if is_event(file.name)]
        yield from (file for file in files if not is_event(file.name))
        yield from dict.fromkeys(file.parent for file in events)


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


def run_import(
    import_run: Import,
    count: Count,
    progress: Progress,
    if_changed: IfChanged = IfChanged.KEEP,
    pause: Callable[[], None] = lambda: None,
    first: int = 0,
) -> None:
    """Import every waiting file, from the number of the `first` on; unreadable ones are refused
    with a sentence.

    Files are imported completely or not at all, so an interrupted import can continue; `pause` is
    called between two of them and may raise.
    """
    between = _Between(pause)
    files = list(import_run.files.filter(pk__gte=first).order_by("pk"))
    for done, file in enumerate(files):
        progress(done, len(files))
        if file.state == ImportFile.State.WAITING:
            _import_waiting(import_run, file, count, if_changed, between)
    for parent in link_parents(import_run.team):
        if parent.measured:
            measure(parent)
    assess.ask_all(import_run.team)
    indexing.ask(import_run.team)
    progress(len(files), len(files))


class _Between:
    """Calls `pause` before each log but the first: an attempt whose archive takes long to open
    would otherwise end without having imported anything, each time."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause, self._has_begun = pause, False

    def __call__(self) -> None:
        if self._has_begun:
            self._pause()
        self._has_begun = True


def _import_waiting(
    import_run: Import,
    file: ImportFile,
    count: Count,
    if_changed: IfChanged,
    pause: Callable[[], None],
) -> None:
    """Import a file, or each log of an archive, which gets a row of its own.

    The row of an archive goes when all its logs have theirs.
    """
    try:
        with objects.as_file(file.stored) as path:
            if is_archive(path):
                _import_archive(import_run, file, path, count, if_changed, pause)
            else:
                pause()
                import_file(import_run.team, file, lambda: read_log(path), count, if_changed)
    except (importers.NotALog, OSError) as error:
        refuse(file, error)


def _import_archive(
    import_run: Import,
    file: ImportFile,
    path: Path,
    count: Count,
    if_changed: IfChanged,
    pause: Callable[[], None],
) -> None:
    # Other archives of the import may have the same name, and logs of this one, too.
    rows = import_run.files.exclude(pk=file.pk).filter(stored=file.stored)
    done = Counter(rows.values_list("path", flat=True))
    log = None
    for log in logs_in(path):
        named = f"{file.path}/{log.name}".rstrip("/")[:1000]
        row = ImportFile(import_run=import_run, path=named, stored=file.stored, size=file.size)
        if done[named]:
            done[named] -= 1
            continue
        into = row if log.name else file
        pause()
        import_file(import_run.team, into, log.read, count, if_changed)
    if log is None:
        raise importers.NotALog("The archive has no files. Choose another one.")
    if file.state == ImportFile.State.WAITING:
        file.delete()


def refuse(file: ImportFile, error: Exception) -> None:
    """Record why a file cannot be imported."""
    file.state = ImportFile.State.REFUSED
    file.problems = [_sentence(error)]
    file.save()


def import_file(
    team: Team,
    file: ImportFile,
    content: Callable[[], bytes],
    count: Count,
    if_changed: IfChanged,
) -> None:
    """Parse one file and store its sessions; record the result on its row."""
    try:
        data = content()
        file.size = len(data)
        log = importers.parse(data, name_of(file.path))
        job = file.import_run.job
        is_trusted = job is None
        keep_coming = job is not None and bool(job.payload.get("exported"))
        created = False
        for session, messages, new in _stored(team, log, count, if_changed, trusted=is_trusted):
            created = created or new
            if len(file.found) < SESSIONS_NAMED:
                file.found.append(str(session.pk))
            file.new_messages += messages
            if not session.measured:
                (assess.measure_soon if keep_coming else assess.measure_now)(session)
                outdate(session)
    except DataError:
        refuse(file, importers.NotALog(TOO_LONG))
        return
    except (importers.NotALog, OSError) as error:
        refuse(file, error)
        return
    _report(file, log, created)
    with transaction.atomic():
        file.save()
        _keep_skipped(team, file, log.skipped)


def _stored(
    team: Team,
    log: records.Log,
    count: Count,
    if_changed: IfChanged,
    *,
    trusted: bool,
) -> Iterable[ImportedSession]:
    """Store a log's sessions, one after the other. Files named in a command are trusted, uploads
    are not. Raises NotALog for an export that does not fit together."""
    if log.traced is not None:
        return append_traces(team, log, count, if_changed)
    if log.rows is None:
        return append_logs(team, log, log.sessions, count, if_changed)
    names = [line.get("external_id") for _, line in log.rows if line["is"] == "session"]
    open_named(team, [*names, *(f"{COPY}{name}"[:300] for name in names)])
    restored = restore(team, log.rows, trusted=trusted)
    try:
        for session in restored.sessions:
            if not session.measured:
                measure_restored(session)
    except Exception as error:  # of any kind: values need not be such as we write
        Session.objects.filter(pk__in=restored.new).delete()
        said = "No figures can be computed from the export's values. Export it again."
        raise importers.NotALog(said) from error
    log.problems += restored.problems
    return [
        ImportedSession(
            one, one.message_count if one.pk in restored.new else 0, one.pk in restored.new
        )
        for one in restored.sessions
    ]


def measure_restored(session: Session) -> None:
    """Compute the figures of a session whose rows were restored."""
    changed = session.changed
    measure(session)
    outdate(session)
    # Measuring is no sign that its agent is at work.
    Session.objects.filter(pk=session.pk).update(changed=changed)


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
    elif not file.messages:
        file.state = ImportFile.State.EMPTY
    else:
        file.state = ImportFile.State.GROWN if file.new_messages else ImportFile.State.KNOWN


def _keep_skipped(team: Team, file: ImportFile, skipped: list[records.Skipped]) -> None:
    """Count skipped records by type and reason; keep the bytes of unknown ones."""
    grouped: dict[tuple[str, str], list[records.Skipped]] = defaultdict(list)
    for record in skipped:
        grouped[record.type[:120], record.reason].append(record)
    masks = incoming(team.pk)
    rows, blobs = [], {}
    for (type_, reason), group in grouped.items():
        kept = group[:KEPT_PER_TYPE] if reason != "not context" else []
        lines = []
        for record in kept:
            raw = record.raw if masks is None else masks.now.raw(record.raw)
            sha = sha256(raw)
            blobs[sha] = raw
            lines.append([record.line, sha])
        rows.append(
            SkippedRecord(file=file, type=type_, reason=reason, count=len(group), lines=lines)
        )
    known = set(Blob.objects.filter(team=team, sha__in=list(blobs)).values_list("sha", flat=True))
    keep(team.pk, [Blob.of(team.pk, raw, sha) for sha, raw in blobs.items() if sha not in known])
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
