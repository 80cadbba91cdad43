"""`contextlab archive`: pack cold sessions, or open one."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.erasure import archiving
from sessions.management.commands.retention import FOREVER, days, waiting
from sessions.management.named import SESSION_HELP, find_session, find_team
from sessions.models import Retention, Team


class Command(BaseCommand):
    help = (
        "Count sessions older than some days, or pack them into a third of their size. Their age "
        "counts from the last step (without times, the import). Archived sessions open as before: "
        "reading one unpacks it, and it stays so for as many days. Nothing is changed without "
        "`--now`, `--every-day` or `--open`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=days, metavar="DAYS", help="since the last step (default: the rule)"
        )
        parser.add_argument("--now", action="store_true", help="archive them now")
        parser.add_argument(
            "--every-day",
            action="store_true",
            help="let the server do so every day; with `--days forever`, no more",
        )
        parser.add_argument("--open", metavar="SESSION", help=f"unpack one: {SESSION_HELP}")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["open"]:
            find_session(options["open"], options["team"])
            self.stdout.write("Unpacked.")
            return
        team = find_team(options["team"])
        row = Retention.objects.filter(team=team).first() or Retention()
        given = options["days"]
        wanted = row.archive_days if given is None else None if given == FOREVER else given
        if wanted is None and (options["now"] or (options["every_day"] and given is None)):
            raise CommandError("After how many days? Name them with `--days`.", returncode=2)
        self._count(team, wanted)
        if options["every_day"]:
            archiving.change(team, wanted, audit.COMMAND)
        if options["now"] and wanted is not None:
            began = time.monotonic()
            many = archiving.archive(team, wanted, audit.COMMAND)
            self.stdout.write(f"Archived {many:,} sessions in {time.monotonic() - began:.1f} s.")
        self._say(team)

    def _count(self, team: Team, wanted: int | None) -> None:
        found = archiving.cold(team, wanted, timezone.now())
        if wanted is not None:
            self.stdout.write(
                f"Last step (without times, import) older than {wanted:,} days, and not unpacked "
                f"since: {found.sessions:,} sessions, {found.bytes:,} bytes of messages"
                f"{waiting(found.at_work, 'archived', found.held)}."
            )

    def _say(self, team: Team) -> None:
        row = Retention.objects.filter(team=team).first() or Retention()
        has = archiving.archives_of(team)
        rule = f"after {row.archive_days:,} days" if row.archive_days else "never"
        self.stdout.write(
            f"Archived: {has.sessions:,} sessions, {has.text_bytes:,} bytes of messages in "
            f"{has.bytes:,}. Every day: {rule}."
        )
