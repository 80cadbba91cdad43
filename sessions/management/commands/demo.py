"""`contextlab demo`: add demo sessions."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from compaction.tokens import counted
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo import load_demo, remove_demo, simulate_demo
from sessions.actions.demo.demo_live import begin_live
from sessions.actions.demo.demo_tuning import tune_demo, work_now
from sessions.models import Session, Team


class Command(BaseCommand):
    help = (
        "Add demo sessions. They show a healthy one, cache breaks, compactions, sub-agents, "
        "failures, huge tool results, and two live agents. Everything is marked as demo; --remove "
        "deletes it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reset", action="store_true", help="remove the demo sessions first")
        parser.add_argument(
            "--remove", action="store_true", help="remove the demo sessions and add none"
        )
        parser.add_argument(
            "--if-empty", action="store_true", help="add them only if there is no session yet"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        team = local_team()
        if options["if_empty"] and Session.objects.for_team(team).exists():
            return
        removed = remove_demo(team) if options["reset"] or options["remove"] else 0
        added: list[Session] = []
        runs = 0
        if not options["remove"]:
            now_ms = int(time.time() * 1000)
            added = load_demo(team, counted, now_ms)
            runs = simulate_demo(added)
            tune_demo(team, added)
            added += begin_live(team, now_ms, counted)
            work_now(team)
            if added:
                audit.note(team, audit.COMMAND, "demo.loaded", sessions=len(added))
        if options["json"]:
            ids = [str(session.pk) for session in added]
            self.stdout.write(json.dumps({"removed": removed, "added": ids, "runs": runs}))
        else:
            self._print(team, removed, added, runs)

    def _print(self, team: Team, removed: int, added: list[Session], runs: int) -> None:
        if removed:
            self.stdout.write(f"{removed} demo sessions removed.")
        for session in added:
            indent = "  " if session.parent_id else ""
            self.stdout.write(
                f"{indent}{session.title}: {session.step_count} steps, {session.model}, "
                f"peak {session.peak_tokens:,} tokens"
            )
        if added:
            self.stdout.write(f"{len(added)} sessions added with {runs} simulations.")
        elif not removed:
            many = Session.objects.for_team(team).filter(demo=True).count()
            self.stdout.write(f"Nothing to add: the {many} demo sessions already exist.")
