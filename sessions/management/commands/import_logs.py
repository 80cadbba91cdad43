"""`contextlab import`: import agent logs."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from compaction.tokens import counted
from sessions.actions.accounts import audit
from sessions.actions.imports.imports import begin_import, files_under, report, run_import
from sessions.importers import IMPORTERS
from sessions.management.named import find_team
from sessions.models import ImportFile


class Command(BaseCommand):
    help = (
        f"Import agent logs ({', '.join(one.title for one in IMPORTERS.values())}). Formats "
        "are detected by content; importing again adds only what is new."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        team = find_team(options["team"])
        if missing := [path for path in paths if not path.exists()]:
            raise CommandError(f"No such file or folder: {missing[0]}", returncode=2)
        found = [(str(path), str(path), path.stat().st_size) for path in files_under(paths)]
        if not found:
            raise CommandError(
                "The given folders contain no files. Choose other paths.", returncode=2
            )
        with transaction.atomic():
            import_run = begin_import(team, found, job=None)
            named = str(import_run.pk)
            audit.note(team, audit.COMMAND, "import.asked", named, files=len(found))
        run_import(import_run, counted, self._progress if not options["json"] else _silent)
        result = report(import_run)
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        else:
            self._print(result)
        self._judge(result, {str(path) for path in paths if path.is_file()})

    def _judge(self, result: dict[str, Any], named: set[str]) -> None:
        """Fail if nothing was imported, or if an explicitly named file was refused."""
        refused = {
            file["path"] for file in result["files"] if file["state"] == ImportFile.State.REFUSED
        }
        if len(refused) == len(result["files"]):
            raise CommandError(
                "None of the files is a readable log. Run `contextlab import --help` for the "
                "formats.",
                returncode=1,
            )
        if sorry := refused & named:
            raise CommandError(f"Not imported: {', '.join(sorted(sorry))}.", returncode=1)

    def _progress(self, done: int, total: int) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{done}/{total} files", ending="\n" if done == total else "")

    def _print(self, result: dict[str, Any]) -> None:
        for file in result["files"]:
            if file["state"] == ImportFile.State.REFUSED:
                self.stdout.write(f"refused  {file['path']}: {file['problems'][0]}")
                continue
            self.stdout.write(
                f"{file['state']:8} {file['path']}  {file['format']}: "
                f"{_many(file['sessions'], 'session')}, {_many(file['messages'], 'message')} "
                f"({file['new_messages']} new), {_many(file['calls'], 'call')}, "
                f"{_many(file['skipped'], 'record')} skipped"
            )
            for problem in file["problems"]:
                self.stdout.write(f"         {problem}")
        self.stdout.write(
            f"{_many(result['sessions'], 'session')}, {_many(result['messages'], 'message')} "
            f"({result['new_messages']} new), {_many(result['calls'], 'model call')}."
        )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _silent(done: int, total: int) -> None:
    pass
