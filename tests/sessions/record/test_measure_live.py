"""Measuring a live session repeatedly gives the same figures as measuring it once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.record import measure as measuring
from sessions.actions.record.append import append
from sessions.actions.record.events import mark
from sessions.actions.record.measure import measure, reopen
from sessions.actions.record.news import News, read_news
from sessions.importers import records
from sessions.models import Edit, Entry, Revision, Run, Session
from sessions.models.record import delta, tail
from tests.sessions.made import count, reads, result, says, user
from tests.sessions.made import session as session_of

pytestmark = [pytest.mark.django_db, pytest.mark.store]

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
    *("cost_at_least", "model", "window", "measured"),
)
START = 1_760_000_000_000


@pytest.fixture(autouse=True)
def settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps settle soon."""
    monkeypatch.setattr(measuring, "SETTLE_ABOVE", 6)
    monkeypatch.setattr(measuring, "LEAVE_OPEN", 2)


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
        before, self.prompt = self.prompt, self.prompt + (700 if number != 8 else -5_000)
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


actions = st.lists(
    st.tuples(
        st.sampled_from(
            [*["step"] * 12, "ask", "late", "late message", "rewind", "clear", "serve", "measure"]
        ),
        st.integers(0, 9),
    ),
    min_size=4,
    max_size=40,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=actions, often=st.integers(1, 9))
def test_in_pieces_it_comes_to_the_same(acts: list[tuple[str, int]], often: int):
    Session.objects.all().delete()
    agent = Agent()
    for place, (what, number) in enumerate(acts):
        agent.act(what, number)
        if what == "measure" or place % often == 0:
            measure(agent.session)
    measure(agent.session)
    in_pieces = agent.measured()
    agent.forget()
    measure(agent.session)
    assert in_pieces == agent.measured()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=actions, often=st.integers(1, 9))
def test_who_has_earlier_figures_gets_the_later_ones(acts: list[tuple[str, int]], often: int):
    Session.objects.all().delete()
    agent = Agent()
    measure(agent.session)
    run = agent.run("recorded")
    had, generation = tail.figures(tail.stored(run)), run.generation
    for place, (what, number) in enumerate(acts):
        agent.act(what, number)
        if place % often == 0:
            measure(agent.session)
        if place % 5 == 0:
            row = tail.stored(run)
            news = tail.since(row, had.count, generation)
            assert news is not None
            kept = tail.until(had, news.step - 1)
            had, generation = tail.joined(kept, news.figures), row.generation
            assert had == tail.figures(row)


def test_a_step_of_a_long_session_reads_what_is_new(monkeypatch: pytest.MonkeyPatch):
    read: list[News] = []

    def noted(*given: Any) -> News:
        read.append(read_news(*given))
        return read[-1]

    monkeypatch.setattr(measuring, "read_news", noted)
    agent = Agent()
    for number in range(40):
        agent.step(number % 10)
        measure(agent.session)
    assert agent.run("recorded").settled >= 30
    assert max(len(news.calls) for news in read) <= measuring.SETTLE_ABOVE + 3
    assert max(len(news.entries["recorded"][0]) for news in read) <= 3 * measuring.SETTLE_ABOVE
    assert not delta.is_stale(agent.session, agent.run("recorded"))


def test_a_measuring_that_was_overtaken_begins_again(monkeypatch: pytest.MonkeyPatch):
    agent = Agent()
    agent.step(0)
    original, calls = measuring._compute, []

    def overtaken(session: Session) -> Any:
        made = original(session)
        calls.append(made)
        if len(calls) == 1:
            Run.objects.filter(session=session).update(generation=9)
        return made

    monkeypatch.setattr(measuring, "_compute", overtaken)
    measure(agent.session)
    assert len(calls) == 2
    assert agent.run("recorded").generation == 10
    assert agent.session.measured


def test_what_is_stored_meanwhile_is_left_to_the_next_time(monkeypatch: pytest.MonkeyPatch):
    agent = Agent()
    agent.step(0)
    original = measuring._compute

    def slowly(session: Session) -> Any:
        made = original(session)
        agent.step(1)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "_compute", slowly)
        measure(Session.objects.get(pk=agent.session.pk))
    agent.session.refresh_from_db()
    assert agent.session.step_count == 2
    assert not agent.session.measured
    assert tail.figures(tail.stored(agent.run("recorded"))).count == 1
    measure(agent.session)
    assert agent.session.measured


def test_a_model_chosen_meanwhile_stays(monkeypatch: pytest.MonkeyPatch):
    agent = Agent()
    agent.step(0)
    original = measuring._compute
    chosen = {"model": "claude-opus-5-5", "window": 12_345}

    def slowly(session: Session) -> Any:
        made = original(session)
        Session.objects.filter(pk=session.pk).update(version=F("version") + 1, **chosen)
        return made

    monkeypatch.setattr(measuring, "_compute", slowly)
    measure(agent.session)
    assert Session.objects.filter(pk=agent.session.pk, **chosen).exists()


def test_a_managed_run_tells_the_usage_of_what_was_sent():
    agent = Agent()
    agent.step(0)
    agent.serve(0)
    agent.step(5)
    agent.step(0)
    # A revision of the agent's product with the number of ours.
    Revision.objects.create(run=agent.run("recorded"), number=1, step=2, trigger="auto")
    measure(agent.session)
    found = agent.measured()
    assert found["recorded"]["steps"]["managed"] == [0, 1, 0]
    assert [prompt is None for prompt in found["managed"]["steps"]["prompt"]] == [True, False, True]
    assert found["managed"]["steps"]["basis"] == [1, 0, 1]
    assert None not in found["recorded"]["steps"]["prompt"]
    # Step 2 was the first to see revision 1 of the managed run, and read nothing of the cache.
    for origin in ("recorded", "managed"):
        titles = [cause["title"] for cause in found[origin]["causes"]]
        assert titles == ["context edited at revision 1"]
    assert found["managed revisions"][0][3] > 0


def test_a_step_has_one_mark_for_what_failed():
    kept = tail.Figures(events=[mark(6, "error", "first"), mark(6, "break", "x")])
    news = tail.Figures(events=[mark(6, "error", "first"), mark(7, "error", "second")])
    answer = [(one["step"], one["kind"]) for one in tail.joined(kept, news).events]
    assert answer == [(6, "error"), (6, "break"), (7, "error")]


def test_late_usage_of_a_settled_step_is_reported():
    agent = Agent()
    for number in [0] * 19 + [1, 0, 0]:
        agent.act("step", number)
        measure(agent.session)
    assert agent.run("recorded").settled == 20
    agent.act("late", 0)
    measure(agent.session)
    assert agent.run("recorded").settled == 20, "it settles where it had"
    assert agent.measured()["recorded"]["steps"]["prompt"][19] == 24405
