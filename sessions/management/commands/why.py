"""`contextlab why`: say why an agent forgot a text."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError
from django.http import Http404

from sessions import figures
from sessions.access import run_named
from sessions.actions.replay.why import LONGEST, TooCommon, TooLong, why
from sessions.actions.reviews.losses import seen_run
from sessions.actions.web.apart import FailedApart, NotInTime
from sessions.api.replay.why import described, kept_rows
from sessions.management.named import SESSION_HELP, find_session
from sessions.models import Run, Session


class Command(BaseCommand):
    help = (
        "Say where the model first saw a text, and why it left the context. Also when it was "
        "needed again, and what that cost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.epilog = "Example: contextlab why 019f03e0 'port 8417' --step 143"
        parser.add_argument("session", help=SESSION_HELP)
        parser.add_argument("text", help=f"at most {LONGEST} characters")
        parser.add_argument("--run", default="recorded", help="recorded, managed, or a policy")
        parser.add_argument(
            "--step", type=int, default=None, help="a step that needed it (default: the first)"
        )
        parser.add_argument("--policies", action="store_true", help="simulate policies as well")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, session: str, text: str, **options: Any) -> None:
        found_session = find_session(session, options["team"])
        step = options["step"]
        _check(found_session, text, step)
        try:
            found = why(found_session, run_named(found_session, options["run"]), text, step)
            rows = described(found)
            if options["policies"]:
                rows["policies"] = kept_rows(found)
        except Http404:
            raise CommandError(f"There is no run {options['run']!r}.", returncode=2) from None
        except TooCommon as error:
            raise CommandError(
                f"{error} For a step: {_with_step(session, text)}", returncode=2
            ) from None
        except TooLong as error:
            raise CommandError(str(error), returncode=2) from None
        except (NotInTime, FailedApart) as error:
            raise CommandError(f"The simulation did not end: {error}.") from None
        if options["json"]:
            self.stdout.write(json.dumps(msgspec.to_builtins(rows), ensure_ascii=False))
            return
        self.stdout.write(rows["sentence"])
        for stay in rows["stays"]:
            self.stdout.write(f"  {stay.where}: {stay.state.replace('_', ' ')}")
        for line in _costs(rows, found.run):
            self.stdout.write(line)
        for row in rows["policies"] or ():
            states = ", ".join(at.replace("_", " ") for at in row["at"]) or "not needed"
            money = figures.money(row["cost_microusd"])
            name = row["policy"] if row["policy"] != "recorded" else _seen(found_session)
            self.stdout.write(f"{name:>20}: {states}; {money} (simulated)")


def _seen(session: Session) -> str:
    """The contexts that the model saw, with the policy of managed ones."""
    run = seen_run(session)
    if run is None or run.origin == Run.Origin.RECORDED:
        return "recorded"
    return f"{run.origin}, {run.policy_version}" if run.policy_version else run.origin


def _with_step(session: str, text: str) -> str:
    """The command that names a step, to fill in."""
    return f"contextlab why {shlex.quote(session)} {shlex.quote(text)} --step N"


def _check(session: Session, text: str, step: int | None) -> None:
    if not 0 < len(text) <= LONGEST:
        raise CommandError(f"Give a text of 1 to {LONGEST} characters.", returncode=2)
    if step is not None and not 1 <= step <= session.step_count:
        raise CommandError(
            f"No such step. The session has steps 1 to {session.step_count}.", returncode=2
        )


def _costs(rows: dict[str, Any], run: Run) -> Iterator[str]:
    """What the loss cost, and the cache break of what removed the text."""
    for one in rows["costs"]:
        steps = ", ".join(map(str, one["steps"]))
        yield f"{one['why'].capitalize()} at step {steps}: {_cost(one)}"
    if rows["loss"]:
        yield rows["loss"]
    if rows["tries"] is not None:
        yield rows["tries"]["sentence"]
    if rows["cache_break_microusd"]:
        known = "simulated" if run.origin == Run.Origin.SIMULATED else "measured"
        yield f"The cache break cost {figures.money(rows['cache_break_microusd'])} ({known})."


def _cost(row: dict[str, Any]) -> str:
    least = "at least " if row["at_least"] and row["cost_microusd"] is not None else ""
    return least + figures.roughly(row["cost_microusd"])
