"""`contextlab probe`: ask a real model at recorded steps, under both contexts of a simulation."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any, get_args
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from compaction.prices.prices import Price, price
from sessions.actions.lab.probe import NoDollarsLeft, Probe, Question, estimate, questions
from sessions.management.named import find_team
from sessions.models import Simulation
from sessions.models.lab.probed import probed
from sessions.next_action import KEYS, Api, ModelClient, NoAnswer

STEPS = 10


def _dollars(text: str) -> int:
    """Micro-dollars of an amount such as 1.50."""
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if not 0 < amount < 100_000:
        raise ArgumentTypeError("give dollars above 0, such as 1.50")
    return round(amount * 1_000_000)


def _asked(
    asked: list[Question], listed: Price, model: str, options: dict[str, Any]
) -> tuple[str, int]:
    """Ask all questions; return why it stopped, if it did, and the micro-dollars spent."""
    try:
        client = ModelClient(options["api"], model, options["base_url"])
    except NoAnswer as error:
        raise CommandError(f"{error}. Nothing was asked.", returncode=2) from None
    probe = Probe(client, listed, options["budget"])
    done = 0
    try:
        for question in asked:
            probe.ask(question)
            done += 1
    except NoDollarsLeft:
        return (
            f"The budget is used up: {done} of {len(asked)} questions were asked. Call it again "
            "with a higher budget to go on.",
            probe.spent,
        )
    except NoAnswer as error:
        return f"{error}. {done} of {len(asked)} questions were asked.", probe.spent
    finally:
        client.close()
    return "", probe.spent


class Command(BaseCommand):
    help = (
        "Ask a real model for its next action at steps of a simulation. It is asked under the "
        "recorded context and the draft's, and both answers are compared with what the agent did. "
        "Sends content of the sessions to the provider. A later call goes on "
        "where this one stopped. The key is read "
        f"from {KEYS['anthropic']} or {KEYS['openai']}."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("simulation", type=UUID, help="id of a simulation, as in its address")
        parser.add_argument("--model", required=True, help="the model to ask")
        parser.add_argument(
            "--api", choices=get_args(Api), default="anthropic", help="the model's API"
        )
        parser.add_argument("--base-url", default="", help="another address of that API")
        parser.add_argument("--steps", type=int, default=STEPS, help="per session (default: 10)")
        parser.add_argument(
            "--budget", type=_dollars, required=True, metavar="DOLLARS", help="the most to spend"
        )
        parser.add_argument("--dry-run", action="store_true", help="only estimate the cost")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, simulation: UUID, model: str, **options: Any) -> None:
        found = Simulation.objects.for_team(find_team(options["team"])).filter(pk=simulation)
        simulated = found.select_related("draft__policy").first()
        if simulated is None:
            raise CommandError(f"There is no simulation {simulation} in this team.", returncode=2)
        listed = price(model, None)
        if listed is None:
            raise CommandError(
                f"The price of {model} is unknown, so no budget can be kept. Add it to the custom "
                "prices.",
                returncode=2,
            )
        asked = list(questions(simulated, max(options["steps"], 1), model))
        expected = estimate(asked, listed)
        stopped, spent = "", 0
        if not options["dry_run"]:
            stopped, spent = _asked(asked, listed, model, options)
        answer = {
            "simulation": str(simulation),
            "model": model,
            "questions": len(asked),
            "estimated_microusd": expected,
            "spent_microusd": spent,
            "stopped": stopped,
            "sides": probed(simulated, model),
        }
        self.stdout.write(json.dumps(answer) if options["json"] else self._text(answer, options))
        if stopped:
            raise CommandError(stopped, returncode=1)

    def _text(self, answer: dict[str, Any], options: dict[str, Any]) -> str:
        about = f"{answer['questions']} questions, about ${answer['estimated_microusd'] / 1e6:.2f}"
        if options["dry_run"]:
            return f"{about} (estimated: prompts without a cache). Nothing was asked."
        lines = [
            f"{about} (estimated); spent ${answer['spent_microusd'] / 1e6:.2f} (measured).",
            f"{'context':<12}{'steps':>7}{'same tool':>11}{'arguments':>11}{'read-backs':>12}"
            f"{'imitates':>10}{'tokens':>12}{'cost':>9}",
        ]
        for name, side in answer["sides"].items():
            lines.append(
                f"{name:<12}{side['steps']:>7}{side['tool']:>11.1%}{side['arguments']:>11.1%}"
                f"{side['read_backs']:>12.1%}{side['imitates']:>10.1%}"
                f"{side['prompt_tokens']:>12,}{side['microusd'] / 1e6:>9.2f}"
            )
        return "\n".join(lines)
