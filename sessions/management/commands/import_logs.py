"""`contextlab import`: import agent logs."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from textwrap import shorten
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from compaction.tokens import counted
from sessions.actions.accounts import audit
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import begin_import, files_under, report, run_import
from sessions.actions.imports.team_import import TeamNotEmpty, import_team, is_team
from sessions.importers import IMPORTERS
from sessions.importers.decoded import NotALog
from sessions.management.named import find_team
from sessions.models import ImportFile, Session, Team

REASON = 300
"""Characters of the reason for a refusal; the page and --json have all of them."""


class Command(BaseCommand):
    help = (
        f"Import logs of Claude Code, Codex and {len(IMPORTERS) - 2} other formats. They are "
        "detected by content. Importing again adds only what is new. The export of a team goes "
        "into an empty team."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument(
            "--if-changed",
            choices=[choice.value for choice in IfChanged],
            default=IfChanged.KEEP.value,
            help="for a log with other messages than are stored: keep these (the default), replace "
            "the stored session, or store the log as a new one",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        team = find_team(options["team"])
        if teams := [path for path in paths if is_team(path)]:
            if len(paths) > 1:
                said = f"{teams[0]} is the export of a team. Import it alone."
                raise CommandError(said, returncode=2)
            self._team(team, teams[0], as_json=options["json"])
            return
        missing = [path for path in paths if not path.exists()]
        there = [path for path in paths if path not in missing]
        absent = f"No such file or folder: {', '.join(map(str, missing))}."
        found = [
            (str(path), str(path.absolute()), path.stat().st_size) for path in files_under(there)
        ]
        if not found:
            nothing = "The given folders contain no files. Choose other paths."
            raise CommandError(absent if missing else nothing, returncode=2)
        with transaction.atomic():
            import_run = begin_import(team, found, job=None)
            named = str(import_run.pk)
            choice = options["if_changed"]
            detail = {"files": len(found), "if_changed": choice}
            audit.note(team, audit.COMMAND, "import.asked", named, **detail)
        progress = self._progress if not options["json"] else _silent
        run_import(import_run, counted, progress, IfChanged(choice))
        result = report(import_run)
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        else:
            self._print(result)
        self._judge(result, {str(path) for path in there if path.is_file()})
        if missing:
            raise CommandError(absent, returncode=1)

    def _team(self, team: Team, path: Path, *, as_json: bool) -> None:
        try:
            problems = import_team(team, path, audit.COMMAND)
        except (NotALog, TeamNotEmpty) as error:
            why = "not empty" if isinstance(error, TeamNotEmpty) else "not readable"
            audit.note(team, audit.COMMAND, "import.refused", "team", why=why)
            raise CommandError(f"{path}: {error}", returncode=1) from None
        sessions = Session.objects.for_team(team).count()
        if as_json:
            self.stdout.write(json.dumps({"sessions": sessions, "problems": problems}))
            return
        for problem in problems:
            self.stdout.write(problem)
        self.stdout.write(f"{_many(sessions, 'session')} in team {team.slug}.")

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
        refused = 0
        for file in result["files"]:
            if file["state"] == ImportFile.State.REFUSED:
                refused += 1
                why = shorten(file["problems"][0], REASON, placeholder=" …")
                self.stdout.write(f"refused  {file['path']}: {why}")
                continue
            self.stdout.write(
                f"{ImportFile.State(file['state']).label:8} {file['path']}  {file['format']}: "
                f"{_many(file['sessions'], 'session')}, {_many(file['messages'], 'message')} "
                f"({file['new_messages']} new), {_many(file['calls'], 'call')}, "
                f"{_many(file['skipped'], 'record')} skipped"
            )
            for problem in file["problems"]:
                self.stdout.write(f"         {problem}")
        self.stdout.write(
            f"{_many(result['sessions'], 'session')}, {_many(result['messages'], 'message')} "
            f"({result['new_messages']} new), {_many(result['calls'], 'model call')}"
            f"{f', {refused} refused' if refused else ''}."
        )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _silent(done: int, total: int) -> None:
    pass
