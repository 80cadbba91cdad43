"""`contextlab retention`: for how long a team keeps data."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.erasure import retention
from sessions.management.named import find_team
from sessions.models import Retention
from sessions.models.record.sessions import QUIET_AFTER

FOREVER, MOST_DAYS = 0, 36_500
QUIET_MINUTES = int(QUIET_AFTER.total_seconds() / 60)


def days(text: str) -> int:
    """A number of days, or FOREVER. Raises ArgumentTypeError."""
    if text == "forever":
        return FOREVER
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST_DAYS:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is no number of days from 1 to {MOST_DAYS:,}, nor “forever”")


def waiting(at_work: int, done: str, held: int) -> str:
    """What of a count waits, and what stays beside it."""
    said = (
        f", {at_work:,} of them still at work (by an import or agent in the last {QUIET_MINUTES} "
    )
    text = f"{said}minutes): {done} later" if at_work else ""
    return text + (f"; {held:,} more are on hold" if held else "")


class Command(BaseCommand):
    help = (
        "Print or set for how many days a team keeps content and sessions. Days count from the "
        "last step (without times, the import). Setting does not ask. The server erases what is "
        "older within a minute of a change, and every day; what an import or agent added to in the "
        f"last {QUIET_MINUTES} minutes waits for the next."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--content", type=days, metavar="DAYS", help="texts, summaries, boards; or “forever”"
        )
        parser.add_argument(
            "--sessions", type=days, metavar="DAYS", help="everything of sessions; or “forever”"
        )
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument(
            "--dry-run", action="store_true", help="only count what would be erased"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        team = find_team(options["team"])
        row = Retention.objects.filter(team=team).first() or Retention()
        given = options["content"], options["sessions"]
        kept = _kept(given[0], row.content_days), _kept(given[1], row.session_days)
        if given != (None, None):
            found = retention.due(team, *kept, timezone.now())
            self.stdout.write(
                f"Last step (without times, import) older than that: the content of "
                f"{len(found.content):,} sessions and {len(found.sessions):,} whole sessions, "
                f"{found.bytes:,} bytes of messages"
                f"{waiting(len(found.at_work), 'erased', found.held)}."
            )
            if not options["dry_run"]:
                retention.change(team, *kept, audit.COMMAND)
        now = (row.content_days, row.session_days) if options["dry_run"] else kept
        for name, many, proposed in zip(("Content", "Sessions"), now, kept, strict=True):
            would = f"; proposed: {_in_words(proposed)}" if proposed != many else ""
            self.stdout.write(f"{name}: {_in_words(many)}{would}")


def _in_words(many: int | None) -> str:
    return f"{many:,} days" if many else "forever"


def _kept(given: int | None, before: int | None) -> int | None:
    return before if given is None else given or None
