"""`contextlab show`: print a session's context at a step."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from compaction.context.blocks import KINDS
from sessions.actions.assessments.session_verdicts import verdict_on_session
from sessions.actions.reviews.fact_ledgers import is_over
from sessions.actions.reviews.sizes import reported
from sessions.figures import at_least
from sessions.management.named import SESSION_HELP, find_session, find_team
from sessions.models import Run, Session, Team
from sessions.models.record import manifest
from sessions.models.record.demo_data import listed
from sessions.models.web.happened import ended

LISTED = 20


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block in context: message and block number, tokens in the session's counting."""

    message: int
    index: int
    kind: str
    tokens: int
    replacement: bool
    revision: int | None
    preview: str


class Command(BaseCommand):
    help = (
        "Print a session's context at a step. Each block is a line; what the session cost and lost "
        f"follows. Without a session, lists the newest {LISTED} with id, title, steps and cost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", nargs="?", help=f"{SESSION_HELP} (default: list the newest)")
        parser.add_argument("--step", type=int, help="model call, from 1 (default: the next one)")
        parser.add_argument("--run", default="", help="recorded, managed, or a simulated policy")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, session: str | None, **options: Any) -> None:
        if session is None:
            self._list(find_team(options["team"]), as_json=options["json"])
            return
        found = find_session(session, options["team"])
        run = _run(found, options["run"])
        last = found.step_count + 1
        step = options["step"] if options["step"] is not None else last
        if not 1 <= step <= last:
            raise CommandError(f"No such step. The session has steps 1 to {last}.", returncode=2)
        rows = _rows(found, run, step)
        verdict = verdict_on_session(found, managed=run.origin == Run.Origin.MANAGED)
        total = sum(row.tokens for row in rows)
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    {
                        "session": found.external_id,
                        "id": str(found.pk),
                        "run": str(run.policy_version or run.origin),
                        "origin": run.origin,
                        "step": step,
                        "tokens": total,
                        "tokens_reported": reported(found, run, step),
                        "tokens_hidden": found.hidden_tokens,
                        "basis": found.token_basis,
                        "verdict": verdict and verdict.sentence,
                        "lost_facts": verdict and verdict.lost_facts,
                        "blocks": [asdict(row) for row in rows],
                    },
                    ensure_ascii=False,
                )
            )
            return
        self._print(found, run, step, rows, total)
        if verdict is not None:
            self.stdout.write(verdict.sentence)
        elif found.step_count and is_over(found):
            self.stdout.write("Not assessed yet: `contextlab serve` does that while it runs.")
        elif found.step_count:
            self.stdout.write("Not assessed yet: its agent may still be at work.")

    def _list(self, team: Team, *, as_json: bool) -> None:
        newest = (
            Session.objects.for_team(team)
            .filter(listed(team.pk), parent=None)
            .order_by("demo", ended().desc(), "-pk")
        )
        rows = list(newest[:LISTED])
        if as_json:
            shown = [
                {
                    "session": one.external_id,
                    "id": str(one.pk),
                    "title": str(one),
                    "steps": one.step_count,
                    "cost_microusd": one.cost_microusd,
                    "cost_at_least": one.cost_is_bound,
                    "demo": one.demo,
                }
                for one in rows
            ]
            self.stdout.write(json.dumps({"sessions": shown}, ensure_ascii=False))
            return
        for one in rows:
            cost = at_least(one.cost_microusd, bound=one.cost_is_bound)
            steps = f"{one.step_count:,} steps"
            title = " ".join(str(one).split())[:80]
            self.stdout.write(f"{one.external_id:36} {steps:>12} {cost:>10}  {title}")
        if not rows:
            self.stdout.write("There are no sessions. `contextlab import PATH` adds some.")

    def _print(
        self, session: Session, run: Run, step: int, rows: list[BlockRow], total: int
    ) -> None:
        for row in rows:
            mark = f"r{row.revision}" if row.replacement else ""
            name = f"{row.message}.{row.index}"
            self.stdout.write(
                f"{name:>8} {row.kind:9} {row.tokens:>8,} {mark:>5}  {row.preview[:100]}"
            )
        hidden = f" + {session.hidden_tokens:,} hidden" if session.hidden_tokens else ""
        said = f"{total:,} tokens ({session.token_basis}){hidden}"
        prompt = reported(session, run, step)
        at = f"at step {step}" if step <= session.step_count else f"after {step - 1:,} steps"
        if prompt is not None:
            uncertain = prompt - total - session.hidden_tokens
            said = f"{prompt:,} tokens as the provider reported; our count of the blocks: {said}"
            said += f", uncertain {uncertain:+,}".replace("-", "−") if uncertain else ""
        self.stdout.write(
            f"{session} {at}, {run.policy_version or run.origin}: {len(rows)} blocks, {said}."
        )


def _run(session: Session, name: str) -> Run:
    runs = session.runs.select_related("policy_version__policy")
    if not name:
        managed = runs.filter(origin=Run.Origin.MANAGED).first()
        return managed or runs.get(origin=Run.Origin.RECORDED)
    found = (
        runs.filter(origin=name).first()
        if name in (Run.Origin.RECORDED, Run.Origin.MANAGED)
        else runs.filter(policy_version__policy__name=name).order_by("-created").first()
    )
    if found is None:
        known = ", ".join(str(run.policy_version or run.origin) for run in runs)
        raise CommandError(f"There is no run {name!r}. Available runs: {known}.", returncode=2)
    return found.of_session(session)


def _rows(session: Session, run: Run, step: int) -> list[BlockRow]:
    columns = manifest.columns(run)
    previews = manifest.previews(session, run, 0, len(columns["position"]))
    rows = []
    for place, preview in enumerate(previews):
        start, end = columns["from"][place], columns["to"][place]
        if start > step or (end and end <= step):
            continue
        rows.append(
            BlockRow(
                message=columns["message"][place],
                index=columns["index"][place],
                kind=KINDS[columns["kind"][place]],
                tokens=session.scaled(columns["tokens"][place]),
                replacement=bool(columns["flags"][place] & manifest.REPLACEMENT),
                revision=columns["edit"][place] or None,
                preview=preview,
            )
        )
    return rows
