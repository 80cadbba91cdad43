"""`contextlab tail`: print a line for each model call as it happens."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from sessions.management.named import find_session, find_team
from sessions.models import ModelCall, Revision, Run, Session, Team


@dataclass(frozen=True, slots=True)
class CallLine:
    """One model call of one session; tokens as reported, None if not.

    `used` is the expected prompt of the next call, if this is the newest.
    """

    session: str
    step: int
    at: int | None
    model: str
    prompt: int | None
    cache_read: int | None
    output: int | None
    used: int | None
    window: int | None
    revision: str | None

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.at / 1000, UTC) if self.at is not None else None
        clock = f"{when:%H:%M:%S}" if when else "--:--:--"
        prompt = "unknown" if self.prompt is None else f"{self.prompt:,}"
        full = ""
        if self.window and self.prompt is not None:
            full = f"  {self.prompt / self.window:.0%} of window"
        elif self.window and self.used:
            full = f"  next call {self.used / self.window:.0%} of window"
        return (
            f"{clock}  {self.session:24.24} step {self.step:<5} {self.model:24.24} "
            f"{prompt:>9} in  {_number(self.cache_read):>9} read  {_number(self.output):>7} out"
            f"{full}{'  ' + self.revision if self.revision else ''}"
        )


class TeamFollower:
    """Follows a team's sessions; each look reads only what is new."""

    def __init__(self, team: Team, only: list[Session], last: int) -> None:
        self._rows = Session.objects.for_team(team)
        if only:
            self._rows = self._rows.filter(pk__in=[session.pk for session in only])
        steps = self._rows.values_list("pk", "version", "step_count")
        self._known = {pk: (version, count) for pk, version, count in steps}
        self._before = last

    def earlier(self) -> list[CallLine]:
        """The last calls before following began, oldest first."""
        newest = ModelCall.objects.filter(session__in=self._rows).order_by("-pk")[: self._before]
        return [_line(call, None) for call in reversed(newest.select_related("session"))]

    def look(self) -> Iterator[CallLine]:
        """Calls added since the last look."""
        for session in self._rows.order_by("changed"):
            version, step = self._known.get(session.pk, (-1, 0))
            if session.version == version:
                continue
            self._known[session.pk] = session.version, session.step_count
            revisions = _revisions(session, step)
            for call in session.calls.filter(step__gt=step).order_by("step"):
                call.session = session
                yield _line(call, revisions.get(call.step))


def _revisions(session: Session, step: int) -> dict[int, str]:
    rows = Revision.objects.filter(
        run__session=session, run__origin=Run.Origin.MANAGED, step__gt=step
    )
    return {row.step: f"r{row.number} {row.trigger}" for row in rows}


def _line(call: ModelCall, revision: str | None) -> CallLine:
    parts = (call.uncached, call.cache_read, call.cache_write_5m, call.cache_write_1h)
    newest = call.step == call.session.step_count
    return CallLine(
        session=call.session.external_id,
        step=call.step,
        at=call.at,
        model=call.model,
        prompt=None if call.uncached is None else sum(part or 0 for part in parts),
        cache_read=call.cache_read,
        output=call.output,
        used=call.session.used_tokens if newest else None,
        window=call.session.window,
        revision=revision,
    )


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


class Command(BaseCommand):
    help = "Print a line for each model call of a team's sessions, as it happens."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sessions", nargs="*", metavar="SESSION", help="only these sessions")
        parser.add_argument(
            "--last",
            type=int,
            default=10,
            help="number of earlier calls to print first (default: 10)",
        )
        parser.add_argument("--once", action="store_true", help="print those and exit")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def handle(self, *args: Any, sessions: list[str], **options: Any) -> None:
        team = find_team(options["team"])
        only = [find_session(name, options["team"]) for name in sessions]
        follow = TeamFollower(team, only, max(options["last"], 0))
        self._print(follow.earlier(), as_json=options["json"])
        while not options["once"]:
            time.sleep(settings.LIVE_POLL_SECONDS)
            self._print(follow.look(), as_json=options["json"])

    def _print(self, lines: Iterator[CallLine] | list[CallLine], *, as_json: bool) -> None:
        for line in lines:
            self.stdout.write(json.dumps(asdict(line)) if as_json else str(line))
        self.stdout.flush()
