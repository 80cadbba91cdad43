"""`contextlab verify`: check the whole store, or what an import makes of logs."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from compaction.tokens import counted
from sessions.actions.imports.imports import files_under
from sessions.actions.imports.opened import OpenedLog, is_archive, logs_in, read_log
from sessions.actions.imports.verified import Verified, verify_log
from sessions.actions.record import checks
from sessions.importers import NotALog
from sessions.importers.bundles import name_of

_Result = Verified | str
"""Of a file: compared, or the sentence why it was refused."""


class Command(BaseCommand):
    help = (
        "Check the store, or what an import of logs would show. Of the store: hashes of all "
        "content, numbering, intervals, references, jobs, the chain of the audit log, and on "
        "SQLite the file. With paths, read each log without the importers, and compare the "
        "context and usage of every model call with what an import would show; nothing is stored. "
        "Exits with 1 if there is a finding or a difference."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        if paths:
            self._verify_logs(paths, as_json=options["json"])
        else:
            self._verify_store(as_json=options["json"])

    # Logs

    def _verify_logs(self, paths: list[Path], *, as_json: bool) -> None:
        if missing := [path for path in paths if not path.exists()]:
            raise CommandError(f"No such file or folder: {missing[0]}", returncode=2)
        states: Counter[str] = Counter()
        listed = []
        for name, result in _results(paths):
            state = _state_of(result)
            states[state] += 1
            if as_json:
                about = {"problem": result} if isinstance(result, str) else asdict(result)
                listed.append({"path": name, "state": state, **about})
            else:
                self._print(name, state, result)
        if as_json:
            self.stdout.write(json.dumps({"files": listed}, ensure_ascii=False, indent=2))
        else:
            counts = ", ".join(f"{many} {state}" for state, many in sorted(states.items()))
            self.stdout.write(f"{states.total()} files: {counts or 'none found'}.")
        if states["different"] or not states["equal"]:
            sys.exit(1)

    def _print(self, name: str, state: str, result: _Result) -> None:
        if isinstance(result, str):
            self.stdout.write(f"{state}  {name}: {result}")
            return
        if result.why_not:
            self.stdout.write(f"{state}  {name}  {result.format}: {result.why_not}")
            return
        self.stdout.write(
            f"{state}  {name}  {result.format}: sessions {result.sessions}, steps "
            f"{result.steps:,}, prompt tokens {result.prompt_tokens:,}, compactions "
            f"{result.compactions}"
        )
        for sentence in (*result.differences, *result.notes):
            self.stdout.write(f"    {sentence}")

    # The store

    def _verify_store(self, *, as_json: bool) -> None:
        total, found = checks.total(), 0
        counts: Counter[str] = Counter()
        listed: list[dict[str, str]] = []
        for part in checks.parts():
            counts[part.stage] += part.rows
            found += len(part.findings)
            self._progress(f"{part.stage}: {counts.total():,} of {total:,}")
            for finding in part.findings:
                if as_json:
                    listed.append(finding._asdict())
                else:
                    self.stdout.write(str(finding))
        self._progress("")
        if as_json:
            self.stdout.write(json.dumps({"rows": counts.total(), "findings": listed}, indent=2))
        elif found:
            many = "1 finding" if found == 1 else f"{found} findings"
            self.stdout.write(f"{many}. Restore what is damaged from a backup.")
        else:
            sessions, blobs = counts["sessions"], counts["blobs"]
            entries = counts["audit entries"]
            self.stdout.write(
                f"Nothing wrong: {sessions:,} sessions, {blobs:,} blobs and {entries:,} audit "
                "entries checked."
            )
        if found:
            sys.exit(1)

    def _progress(self, text: str) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{text:<60}", ending="")
            self.stderr.flush()


def _results(paths: list[Path]) -> Iterator[tuple[str, _Result]]:
    """The logs at or below the paths by name, those in archives too, each with its result."""
    for path in files_under(paths):
        try:
            for log in _logs_at(path):
                named = f"{path}/{log.name}".rstrip("/")
                yield named, _result(log, named)
        except (NotALog, OSError) as error:
            yield str(path), str(error)


def _logs_at(path: Path) -> Iterator[OpenedLog]:
    if is_archive(path):
        yield from logs_in(path)
    else:
        yield OpenedLog("", lambda: read_log(path))


def _result(log: OpenedLog, named: str) -> _Result:
    try:
        return verify_log(log.read(), name_of(named), counted)
    except (NotALog, OSError) as error:
        return str(error)


def _state_of(result: _Result) -> str:
    if isinstance(result, str):
        return "refused"
    if result.why_not:
        return "not verified"
    if result.differences:
        return "different"
    return "equal" if result.steps or result.sessions else "nothing to compare"
