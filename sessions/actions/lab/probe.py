"""Ask a real model for its next action at recorded steps, under two contexts each: the recorded
one and that of a simulated policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction import render
from compaction.context.blocks import Block, Context
from compaction.context.edits import Entry, context_at
from compaction.context.excerpt import BadSelection
from compaction.context.wire import WireBlock
from compaction.losses.next_action import Action, actions, match, spaced
from compaction.policies.policy import from_dict
from compaction.prices.prices import Price, cost
from compaction.render.images import readable
from compaction.simulation.recording import Recording
from compaction.tools import read_tool
from sessions.actions.lab.simulated_figures import recording_of
from sessions.actions.live.handing_out.read_back import NothingThere, read_back
from sessions.models import PolicyVersion, Session, Simulation, SimulationResult
from sessions.models.record.values import wire_blocks
from sessions.next_action import MOST_OUTPUT, Api, ModelAnswer, ModelClient, result_of

USUAL_OUTPUT = 500
"""Output tokens that an estimate assumes per answer."""

MOST_READ_BACKS = 3
"""Read-backs answered before an action counts."""


class NoDollarsLeft(Exception):
    """The next request could cost more than what is left of the budget."""


@dataclass(frozen=True, slots=True)
class Question:
    """A step of a session under one context: the recorded one (`version` None) or a policy's."""

    result: SimulationResult
    step: int
    recorded: Action
    context: tuple[Block, ...]
    hidden: int

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt."""
        return self.hidden + sum(block.tokens for block in self.context)


def questions(simulation: Simulation, steps: int, model: str) -> Iterator[Question]:
    """Yield what to ask: what has no answer yet: of each session the same steps under both.

    Steps are evenly spaced over those at which the contexts differ and the log shows what the agent
    did. Thinking is left out of both: it is bound to the account that it was made for. Raises
    MissingBlob, DamagedBlob, InvalidPolicy.
    """
    version = simulation.draft
    rows = simulation.results.select_related("session").filter(problem="")
    found = {(row.session_id, row.version_id): row for row in rows}
    for (session, of), mine in found.items():
        base = found.get((session, None))
        if of != version.pk or base is None:
            continue
        recording = recording_of(mine.session)
        for step, recorded, managed, acted in _chosen(recording, version, steps):
            for row, context in ((base, recorded), (mine, managed)):
                if str(step) not in answers_of(row, model):
                    blocks = tuple(one for one in context.values() if one.type != "thinking")
                    yield Question(row, step, acted, blocks, recording.value.hidden)


def _chosen(
    recording: Recording, version: PolicyVersion, most: int
) -> Iterator[tuple[int, Context, Context, Action]]:
    lived, run = recording.lived, recording.run_under(from_dict(version.document))
    acted = actions(recording.value.blocks)
    differ = _differing(lived.entries, run.entries, len(run.steps))
    for step in spaced([step for step in differ if step in acted], most):
        recorded, managed = (context_at(one.entries, step) for one in (lived, run))
        yield step, recorded, managed, acted[step]


def _differing(lived: Iterable[Entry], run: Iterable[Entry], steps: int) -> list[int]:
    """Return the steps whose contexts differ, by the intervals of their blocks."""
    changes = [0] * (steps + 2)
    mine, theirs = (
        {(one.block.id, one.from_step, one.to_step or steps + 1) for one in entries}
        for entries in (lived, run)
    )
    for _, start, end in mine ^ theirs:
        for place, by in ((min(start, steps + 1), 1), (min(end, steps + 1), -1)):
            changes[place] += by
    standing, found = 0, []
    for step in range(1, steps + 1):
        standing += changes[step]
        if standing:
            found.append(step)
    return found


def answers_of(row: SimulationResult, model: str) -> dict[str, dict[str, Any]]:
    """Return the stored answers of a model by step."""
    found: dict[str, dict[str, Any]] = row.figures.get("probe", {}).get(model, {})
    return found


def estimate(asked: Sequence[Question], price: Price) -> int:
    """Return micro-dollars: prompts uncached, `USUAL_OUTPUT` tokens of output each."""
    return (
        sum(
            (one.tokens * price.at(one.tokens).input + USUAL_OUTPUT * price.at(one.tokens).output)
            for one in asked
        )
        // 1000
    )


@dataclass(slots=True)
class Probe:
    """Asks questions until the budget (micro-dollars) could be exceeded, and stores each answer."""

    client: ModelClient
    price: Price
    budget: int
    spent: int = 0

    def ask(self, question: Question) -> dict[str, Any]:
        """Ask, answer read-backs from the store, compare, store. Raises NoDollarsLeft, NoAnswer."""
        context = _rendered(question, self.client.api, self.client.model)
        tokens = output = read_backs = spent = 0
        while True:
            answer = self._next(context, question.tokens + tokens)
            tokens, output = answer.usage.prompt, output + answer.usage.output
            spent += cost(answer.usage, self.price)
            asked = [one for one in answer.calls if one[1] == read_tool.NAME]
            if not asked or read_backs >= MOST_READ_BACKS:
                break
            read_backs += 1
            context["messages"] += self._read(question.result.session, answer)
        found = match(question.recorded, answer.action)
        made = {
            "tool": found.tool,
            "arguments": round(found.arguments, 3),
            "read_backs": read_backs,
            "imitates": answer.action.imitates,
            "prompt_tokens": tokens,
            "output_tokens": output,
            "microusd": spent,
        }
        _store(question, self.client.model, made)
        return made

    def _next(self, context: dict[str, Any], tokens: int) -> ModelAnswer:
        rates = self.price.at(tokens)
        if self.spent + (tokens * rates.input + MOST_OUTPUT * rates.output) // 1000 > self.budget:
            raise NoDollarsLeft
        answer = self.client.ask(context)
        self.spent += cost(answer.usage, self.price)
        return answer

    def _read(self, session: Session, answer: ModelAnswer) -> list[dict[str, Any]]:
        """Return the messages that answer all calls of a response; others than reading back are
        not made."""
        results = []
        for call, name, given in answer.calls:
            text = _text(session, given) if name == read_tool.NAME else "Not run yet."
            results.append(result_of(self.client.api, call, text))
        if self.client.api == "openai":
            return [answer.message, *results]
        parts = [part for one in results for part in one["content"]]
        return [answer.message, {"role": "user", "content": parts}]


def _text(session: Session, given: Mapping[str, Any]) -> str:
    try:
        return read_back(session, *read_tool.asked(given)).text
    except (BadSelection, NothingThere) as error:
        return str(error)


def _rendered(question: Question, api: Api, model: str) -> dict[str, Any]:
    wires = wire_blocks(question.result.session, question.context)

    def stored(block: Block) -> WireBlock:
        return wires[block.id]

    wire_of = readable(model, stored)
    if api == "openai":
        body = render.openai(question.context, wire_of)
    else:
        body = render.anthropic(question.context, wire_of, breakpoints=False)
    del body["notes"]
    known = {_name(one) for one in body.get("tools", ())}
    tools = [*body.get("tools", ()), *_inferred(question.context, known, api)]
    if any(block.replaces is not None for block in question.context):
        tools.append(read_tool.definition(api))
    return {**body, "tools": tools} if tools else body


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("function", tool)["name"])


def _inferred(context: Iterable[Block], known: set[str], api: Api) -> list[dict[str, Any]]:
    """Define the tools that the context calls and its log does not define; any input is right."""
    names = dict.fromkeys(one.tool for one in context if one.type == "tool_use" and one.tool)
    schema = {"type": "object"}
    if api == "openai":
        functions = ({"name": one, "parameters": schema} for one in names if one not in known)
        return [{"type": "function", "function": one} for one in functions]
    return [{"name": one, "input_schema": schema} for one in names if one not in known]


def _store(question: Question, model: str, made: dict[str, Any]) -> None:
    row = question.result
    row.refresh_from_db(fields=["figures"])
    row.figures.setdefault("probe", {}).setdefault(model, {})[str(question.step)] = made
    row.save(update_fields=["figures"])
