"""`contextlab compare`: compare two sessions step by step."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import Http404

from sessions.actions.replay.comparison_verdicts import comparison_verdict
from sessions.actions.replay.comparisons import (
    ComparedStep,
    Comparison,
    TooManySteps,
    value_text,
)
from sessions.api.replay.comparison import compared, described_comparison
from sessions.management.named import SESSION_HELP, find_session

MARKS = {"same": "=", "reworded": "≈", "changed": "~", "a": "<", "b": ">"}
WIDTH = 56
RUN_HELP = "recorded, managed, a simulated policy, or an id of a run"


class Command(BaseCommand):
    help = (
        "Compare two sessions. Prints what each cost and kept, where they part, and their steps "
        "aligned by what the model did. With --run or --with-run, two runs of one session."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("a", help=SESSION_HELP)
        parser.add_argument("b", nargs="?", default="", help=SESSION_HELP)
        parser.add_argument("--run", default="", help=f"{RUN_HELP}; A, default: recorded")
        parser.add_argument("--with-run", default="", help=f"{RUN_HELP}; B, default: recorded")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--steps", action="store_true", help="print the aligned steps as well")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, a: str, b: str, **options: Any) -> None:
        names = options["run"], options["with_run"]
        if bool(b) == any(names):
            text = "Name two sessions, or one and --run or --with-run."
            raise CommandError(text, returncode=2)
        one = find_session(a, options["team"])
        try:
            found = compared(one, find_session(b, options["team"]) if b else one, *names)
        except Http404:
            known = ", ".join(str(run.policy_version or run.origin) for run in one.runs.all())
            text = f"There is no such run. Available runs: {known}."
            raise CommandError(text, returncode=2) from None
        except TooManySteps as error:
            raise CommandError(str(error), returncode=2) from None
        if options["json"]:
            self.stdout.write(json.dumps(described_comparison(found), ensure_ascii=False))
            return
        self._write(found)
        if options["steps"]:
            for row in found.rows:
                sides = (_line(found.steps_a, row.a), _line(found.steps_b, row.b))
                self.stdout.write(f"{sides[0]:{WIDTH}} {MARKS[row.op]} {sides[1]}".rstrip())

    def _write(self, found: Comparison) -> None:
        verdict = comparison_verdict(found)
        sides = [f"{run.policy_version or run.origin}" for run in found.runs or ()]
        a, b = sides or (str(found.a), str(found.b))
        self.stdout.write(f"A: {a}\nB: {b}\n{verdict.sentence}\n{verdict.detail}")
        for one in found.figures:
            texts = [value_text(one, at) for at in (0, 1)]
            self.stdout.write(f"  {one.title:24}{texts[0]:>14}{texts[1]:>14}")


def _line(steps: Mapping[int, ComparedStep], step: int | None) -> str:
    if step is None:
        return ""
    one = steps[step]
    return f"{step:>5} {'failed: ' if one.failed else ''}{one.what}"[:WIDTH]
