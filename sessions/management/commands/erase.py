"""`contextlab erase`: erase data for good, and verify receipts."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions.actions.accounts import audit
from sessions.actions.accounts.members import LastOwner
from sessions.actions.erasure import receipts, remnants
from sessions.actions.erasure.again import again
from sessions.actions.erasure.holds import Held
from sessions.actions.erasure.requests import ErasureRule, NothingToErase, Scope, begin, scope_of
from sessions.actions.erasure.rows import said
from sessions.actions.erasure.rules import sessions_of
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.management.named import SESSION_HELP, find_session, find_team
from sessions.models import Erasure, Job, Team

Kind = Erasure.Kind

WAIT = 0.2
"""Seconds between looks at a job that a server does."""


class Command(BaseCommand):
    help = (
        "Erase a session, a task, a subject, a member's data or a whole team. Everything made of "
        "it goes for good, too. Asks first, and prints the receipt. `--verify` checks a receipt "
        "later, `--again` erases what a restored backup brought back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", nargs="?", help=SESSION_HELP)
        parser.add_argument("--task", help="all sessions and the board of a task")
        parser.add_argument(
            "--metadata", metavar="KEY=VALUE", help="all sessions with this metadata"
        )
        parser.add_argument("--text", help="all sessions whose texts contain this")
        parser.add_argument("--member", metavar="NAME", help="a member's data")
        parser.add_argument("--whole-team", action="store_true", help="everything of the team")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--dry-run", action="store_true", help="only count what would go")
        parser.add_argument("--reason", default="", help="kept in receipt and audit log")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument(
            "--receipt", type=Path, metavar="FILE", help="a new file for the receipt"
        )
        parser.add_argument("--verify", type=Path, metavar="RECEIPT", help="verify a receipt")
        parser.add_argument(
            "--again",
            type=Path,
            nargs="?",
            const=receipts.receipts_file(),
            metavar="FILE",
            help="erase again what the receipts in a file name (default: the server's own)",
        )
        parser.add_argument(
            "--rewrite",
            action="store_true",
            help="rewrite the files of the database, so that no free space holds what was erased; "
            "locks a table at a time",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rewrite"]:
            self._rewrite()
        elif options["verify"]:
            self._verify(options["verify"])
        elif options["again"]:
            found = again(options["again"])
            self.stdout.write(f"{found.receipts} receipts, {found.sessions} sessions erased again.")
            if found.unreadable:
                self.stderr.write(f"{found.unreadable} lines are no receipts and were left out.")
        else:
            self._erase(options)

    def _rewrite(self) -> None:
        try:
            complete = remnants.rewrite(lambda: None)
        except remnants.StillRead:
            raise CommandError(
                "A transaction that began before still reads what was erased, so files would keep "
                "it. End it (a backup, an export, an open psql), and run this again.",
                returncode=1,
            ) from None
        if not complete:
            raise CommandError(
                "The tables are rewritten; statistics and the write-ahead log may still have what "
                "was erased. As a superuser of PostgreSQL, run VACUUM FULL pg_statistic; then "
                "SELECT pg_switch_wal(); CHECKPOINT; once for each file in pg_wal, and twice more.",
                returncode=1,
            )
        self.stdout.write("The tables are rewritten: nothing of what was erased is left in them.")

    def _verify(self, path: Path) -> None:
        try:
            receipt = receipts.parse(path.read_text())
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.", returncode=2) from None
        except (receipts.NoReceipt, UnicodeDecodeError) as error:
            raise CommandError(f"{path}: {error}", returncode=2) from None
        found = receipts.verify(receipt)
        is_unknown = found.signature == "another key" and not (found.sessions or found.content)
        failed = "cannot be checked" if is_unknown else "does not hold"
        self.stdout.write(f"{'holds' if found.holds else failed}: {found}")
        if not found.holds:
            sys.exit(1)

    def _erase(self, options: dict[str, Any]) -> None:
        team, path = find_team(options["team"]), options["receipt"]
        if path and path.exists():
            raise CommandError(f"{path} already exists. Choose another file.", returncode=2)
        rule = _rule(team, options)
        try:
            sessions = sessions_of(team, rule)
            self._show(scope_of(team, rule, sessions))
            if options["dry_run"]:
                return
            if not options["yes"] and not _agreed(team):
                raise CommandError("Nothing was erased.", returncode=1)
            erasure = begin(team, rule, sessions, audit.COMMAND, options["reason"])
        except (NothingToErase, Held, LastOwner) as error:
            raise CommandError(str(error), returncode=1) from None
        _run(erasure)
        self._hand_out(erasure, path)

    def _show(self, scope: Scope) -> None:
        rows = ", ".join(
            f"{many:,} {said(name, many)}" for name, many in scope.rows.items() if many
        )
        self.stderr.write(f"{rows or 'no rows'}; {scope.bytes:,} bytes of messages.")
        if scope.first:
            more = f" and {scope.more:,} more" if scope.more else ""
            self.stderr.write(f"Sessions: {', '.join(scope.first.values())}{more}.")
        if scope.held:
            self.stderr.write(scope.held)
        if scope.shared:
            self.stderr.write(
                f"{scope.shared} shares were delivered to other sessions: what these received "
                "stays in their records. Erase these sessions, too, if it must go."
            )

    def _hand_out(self, erasure: Erasure, path: Path | None) -> None:
        erasure.refresh_from_db()
        if not erasure.receipt:
            raise CommandError(
                "The erasure is not done; the server's job continues it. Its receipt will be under "
                "Settings, Data.",
                returncode=1,
            )
        text = json.dumps(json.loads(erasure.receipt), indent=2)
        if path:
            path.write_text(text + "\n")
            self.stderr.write(f"Erased. The receipt is in {path}.")
        else:
            self.stdout.write(text)


def _rule(team: Team, options: dict[str, Any]) -> ErasureRule:
    """The one rule that the options name. Raises CommandError."""
    named = [
        (kind, options[kind.value])
        for kind in (Kind.SESSION, Kind.TASK, Kind.METADATA, Kind.TEXT, Kind.MEMBER)
        if options[kind.value] is not None
    ]
    named += [(Kind.TEAM, team.slug)] if options["whole_team"] else []
    if len(named) != 1:
        raise CommandError(
            "Name one thing to erase: a session, --task, --metadata, --text, --member or "
            "--whole-team.",
            returncode=2,
        )
    kind, value = named[0]
    if kind == Kind.SESSION:
        value = str(find_session(value, options["team"]).pk)
    return ErasureRule(kind, value)


def _agreed(team: Team) -> bool:
    if not sys.stdin.isatty():
        raise CommandError(
            "This needs an answer, and there is no terminal. Add --yes to erase.", returncode=2
        )
    return input(f"This cannot be undone. Type {team.slug} to erase: ").strip() == team.slug


def _run(erasure: Erasure) -> None:
    """Do the job here, unless a server has taken it already."""
    assert erasure.job_id is not None
    job = jobs.claim(erasure.job_id)
    if job is not None and job.token is not None:
        attempt(job.pk, job.token)
        return
    while not Job.objects.get(pk=erasure.job_id).is_finished:
        time.sleep(WAIT)
