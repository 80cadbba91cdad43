"""`contextlab audit`: verify and export the audit log."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions.actions.accounts import audit, chain
from sessions.actions.notifications.occurrences import send_entry
from sessions.management.named import find_team
from sessions.models import AuditEntry, NotificationChannel, Team

MOST_SENT = 1000
"""Entries that one command sends to a channel."""


class Command(BaseCommand):
    help = (
        "Check the audit log, or export it. `verify` checks its hash chain, names the first "
        "broken link of each team and exits with 1 if there is one. `export` writes JSON lines, "
        "or sends to a notification channel."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="verify|export")
        verify = verbs.add_parser("verify", help="check the chain from the first entry")
        verify.add_argument("--team", help="team slug (default: all teams)")
        verify.add_argument(
            "--against",
            type=Path,
            metavar="FILE",
            help="an earlier export: its entries must still be in the log, unchanged",
        )
        verify.add_argument("--json", action="store_true", help="print JSON")
        export = verbs.add_parser("export", help="write entries, oldest first")
        export.add_argument("--team", help="team slug (default: the local team)")
        export.add_argument(
            "--after", type=int, default=0, metavar="NUMBER", help="only later entries"
        )
        export.add_argument(
            "--channel",
            metavar="NAME",
            help="send each entry to this notification channel instead; failed deliveries are "
            f"tried again (at most {MOST_SENT:,} entries)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, f"_{options['verb']}")(options)

    # Verify

    def _verify(self, options: dict[str, Any]) -> None:
        slug = options["team"]
        teams = [find_team(slug)] if slug else list(Team.objects.order_by("slug"))
        wrong = [f"trigger {name} is missing" for name in chain.missing_guards()]
        rows = []
        for team in teams:
            result = chain.check(team)
            if isinstance(result, chain.BrokenLink):
                wrong.append(str(result))
            else:
                rows.append({"team": team.slug, **result._asdict()})
        if options["against"]:
            wrong += _differences(options["against"], teams)
        if options["json"]:
            self.stdout.write(json.dumps({"teams": rows, "problems": wrong}, indent=2))
        else:
            for row in rows:
                self.stdout.write(_said(row))
            for one in wrong:
                self.stdout.write(f"BROKEN  {one}")
        if wrong:
            sys.exit(1)

    # Export

    def _export(self, options: dict[str, Any]) -> None:
        team, after = find_team(options["team"]), options["after"]
        rows = AuditEntry.objects.filter(team=team, number__gt=after).order_by("number")
        # An entry of its own, after those that are exported.
        last = rows.values_list("number", flat=True).last() or after
        rows = rows.filter(number__lte=last)
        if options["channel"] is None:
            audit.note(team, audit.COMMAND, "export.made", "audit log", after=after)
            for row in rows.iterator(2000):
                self.stdout.write(json.dumps(chain.line_of(row)))
            return
        name = options["channel"]
        channel = NotificationChannel.objects.filter(team=team, name=name).first()
        if channel is None:
            raise CommandError(
                f"Team {team.slug} has no channel {name!r}. Create it under Settings, "
                "Notifications.",
                returncode=2,
            )
        audit.note(team, audit.COMMAND, "export.made", "audit log", after=after, channel=name)
        sent = [row.number for row in rows[:MOST_SENT] if send_entry(channel, row)]
        if sent:
            self.stdout.write(
                f"{len(sent):,} entries are on their way, the last is {sent[-1]:,}. The delivery "
                "log is under Settings, Notifications."
            )
        else:
            self.stdout.write("No entries to send: the channel has them all.")


def _said(row: dict[str, Any]) -> str:
    erased = f", {row['erased']:,} with an erased name" if row["erased"] else ""
    hash_ = f", last hash {row['hash']}" if row["hash"] else ""
    return f"ok      team {row['team']}: {row['number']:,} entries{erased}{hash_}"


def _differences(file: Path, teams: list[Team]) -> Iterator[str]:
    """The first entry of an export, per team, that the log does not have as it was."""
    known = {str(team.pk): team for team in teams}
    done: set[str] = set()
    try:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        places = [
            (line["team"], line["number"], line["hash"], chain.hash_of(line)) for line in lines
        ]
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}.", returncode=2) from None
    except (ValueError, KeyError, TypeError):
        raise CommandError(
            f"{file} is not an export of the audit log. Use `contextlab audit export`.",
            returncode=2,
        ) from None
    for team, number, claimed, hashed in places:
        if team not in known or team in done:
            continue
        where = f"team {known[team].slug}, entry {number}"
        now = AuditEntry.objects.filter(team=team, number=number).values_list("hash", flat=True)
        if claimed != hashed:
            yield f"{where}: the export does not match its own hash"
        elif claimed not in now:
            yield f"{where}: the log has another entry than the export, or none"
        else:
            continue
        done.add(team)
