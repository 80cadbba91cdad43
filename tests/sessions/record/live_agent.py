"""An agent that reports its session while it runs, and what measuring found."""

from __future__ import annotations

import json
from typing import Any

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import reopen
from sessions.importers import records
from sessions.models import Edit, Entry, Revision, Run, Session
from sessions.models.record import tail
from tests.sessions.made import count, reads, result, says, user
from tests.sessions.made import session as session_of

SUMS = (
    *(
        "hidden_tokens",
        "sparkline",
        "peak_measured",
        "peak_tokens",
        "usage_calls",
        "uncached_tokens",
    ),
    *("cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_microusd", "break_count"),
    *("cost_at_least", "model", "window", "measured", "learned_ratio"),
)
START = 1_760_000_000_000


class Agent:
    """A session sent by an agent, and a policy that edits it."""

    def __init__(self) -> None:
        self.steps = 0
        self.prompt = 9_000
        self.unreported: list[int] = []
        self.session = Session()
        self.send(user("Please read the files.", key="k0", at=START))

    def send(self, *new: records.Record) -> None:
        incoming = session_of(*new)
        incoming.model = ""
        self.session = append(local_team(), incoming, count, source="api").session

    def run(self, origin: str) -> Run:
        found, _ = Run.objects.get_or_create(session=self.session, origin=origin)
        return found

    def act(self, what: str, number: int) -> None:
        match what:
            case "step":
                self.step(number)
            case "ask":
                self.send(user(f"and {number}?", key=f"u{self.session.version}"))
            case "late" if self.unreported:
                self.report(self.unreported.pop(number % len(self.unreported)), number)
            case "late message" if self.steps:
                step = 1 + number % self.steps
                self.send(says(f"c{step}", "and another thing", key=f"l{self.session.version}"))
            case "rewind":
                self.send(records.Rewind((f"k{self.steps}b",), key=f"r{self.session.version}"))
            case "clear":
                clear = records.Clear((f"t{self.steps}",), key=f"x{self.session.version}")
                self.send(clear)
            case "serve" if self.steps:
                self.serve(number)

    def step(self, number: int) -> None:
        self.steps += 1
        n = self.steps
        self.send(
            reads(f"c{n}", f"t{n}", f"src/f{n}.py", key=f"k{n}a"),
            result(f"t{n}", f"content {n} " * (number + 1), key=f"k{n}b", error=number == 3),
        )
        if number == 1:
            self.unreported.append(n)
        else:
            self.report(n, number)
        if number > 4 and self.session.runs.filter(origin="managed").exists():
            self.session.calls.filter(step=n).update(context="ctx_1")

    def report(self, step: int, number: int) -> None:
        model = "gpt-5" if number == 7 else "claude-sonnet-4-5"
        before, self.prompt = self.prompt, self.prompt + (100 if number != 8 else -5_000)
        self.prompt = max(self.prompt, 1_000)
        read = 0 if number in (2, 5) else min(before, self.prompt)
        usage = Usage(uncached=5, cache_read=read, cache_write_5m=self.prompt - read, output=9)
        self.send(records.Call(f"c{step}", model, START + step * 400_000 * (number == 6), usage))
        reopen(self.session, step)

    def serve(self, number: int) -> None:
        """Store a revision of the managed run, as a policy makes it for the next call."""
        run = self.run("managed")
        taken = run.entries.values_list("block_id", flat=True)
        block = self.session.blocks.exclude(pk__in=taken).order_by("position")[number:].first()
        if block is None:
            return
        run.head += 1
        run.save(update_fields=["head"])
        step = self.session.step_count + 1
        made = Revision.objects.create(
            run=run, number=run.head, step=step, trigger="batch", tokens_before=9, tokens_after=5
        )
        edit = Edit.objects.create(revision=made, index=0, strategy="offload")
        Entry.objects.create(
            run=run,
            position=block.position,
            block=block,
            from_step=min(block.born, step),
            to_step=step,
            closed_by=edit,
        )

    def measured(self) -> dict[str, Any]:
        """All that measuring writes."""
        session = Session.objects.get(pk=self.session.pk)
        found: dict[str, Any] = {name: getattr(session, name) for name in SUMS}
        found["calls"] = list(session.calls.order_by("step").values_list("step", "cost_microusd"))
        for run in session.runs.all():
            found[run.origin] = json.loads(tail.figures_json(tail.stored(run)))
            found[f"{run.origin} revisions"] = list(
                run.revisions.order_by("number").values_list(
                    "number", "tokens_before", "tokens_after", "cache_rewritten", "cost_microusd"
                )
            )
        return found

    def forget(self) -> None:
        """Reset as if never measured."""
        self.session.runs.update(
            bases=None, tail=None, settled=0, columns=b"", entries_key="", reopened=None
        )
