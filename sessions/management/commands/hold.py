"""`contextlab hold`: legal holds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from sessions.actions.accounts import audit
from sessions.actions.erasure import holds
from sessions.management.named import SESSION_HELP, find_session, find_team
from sessions.models import Hold


class Command(BaseCommand):
    help = (
        "Protect a session, a task or a whole team from erasure. Nothing of what is on hold is "
        "erased, by anyone or by retention, until the hold is released."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="add|list|release")
        add = verbs.add_parser("add", help="hold a session, a task or the team")
        add.add_argument("session", nargs="?", help=SESSION_HELP)
        add.add_argument("--task", help="all sessions of a task")
        add.add_argument("--whole-team", action="store_true", help="everything of the team")
        listed = verbs.add_parser("list", help="print the holds, oldest first")
        release = verbs.add_parser("release", help="release a hold")
        release.add_argument("hold", type=UUID, help="its id, as `list` prints it")
        for one in (add, release):
            one.add_argument("--reason", required=True, help="kept in the audit log")
        for one in (add, listed, release):
            one.add_argument("--team", default=None, help="team slug (default: the local team)")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, f"_{options['verb']}")(options)

    def _add(self, options: dict[str, Any]) -> None:
        team, task, session = find_team(options["team"]), options["task"], options["session"]
        if [session is not None, task is not None, options["whole_team"]].count(True) != 1:
            raise CommandError("Name a session, --task or --whole-team.", returncode=2)
        kind, value = Hold.Kind.TEAM, ""
        if session is not None:
            kind, value = Hold.Kind.SESSION, str(find_session(session, options["team"]).pk)
        elif task is not None:
            kind, value = Hold.Kind.TASK, task
        try:
            made = holds.hold(team, kind, value, audit.COMMAND, options["reason"])
        except holds.NothingToHold as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(f"On hold: {made.pk}")

    def _list(self, options: dict[str, Any]) -> None:
        for row in holds.in_force(find_team(options["team"])):
            about = row.session or row.task or "everything"
            when = row.created.date().isoformat()
            self.stdout.write(f"{row.pk}  {row.kind} {about}  {when}, {row.by}: {row.reason}")

    def _release(self, options: dict[str, Any]) -> None:
        rows = Hold.objects.filter(team=find_team(options["team"]), pk=options["hold"])
        row = rows.select_related("team").first()
        if row is None or not holds.release(row, audit.COMMAND, options["reason"]):
            raise CommandError(
                f"There is no hold {options['hold']} in force. `contextlab hold list` prints them.",
                returncode=2,
            )
        self.stdout.write("Released.")
