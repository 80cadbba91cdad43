"""Runs: equal in every process, and based on reported usage only while it applies."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from compaction.context.session import Call, Usage
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.simulation.run import Terms, simulate_cache
from compaction.simulation.simulate import simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from compaction.tools.listed import sized
from compaction.tools.read_tool import definition
from tests.build import coding, rough

_DIGEST = """
import hashlib
from compaction.policies.presets import PRESETS
from compaction.simulation.run import Terms, simulate_cache
from compaction.simulation.simulate import simulate
from tests.build import coding, rough
session = coding(600, 500)
runs = [simulate(session, policy, rough) for policy in PRESETS.values()]
print(hashlib.sha256(repr([(r.steps, r.revisions) for r in runs]).encode()).hexdigest())
"""


def test_the_order_of_sets_cannot_matter() -> None:
    """Equal bytes under three seeds of Python's hash."""
    digests = set()
    for seed in ("1", "2", "77"):
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_passthrough_changes_nothing() -> None:
    session = coding(100)
    run = simulate(session, PRESETS["passthrough"], rough)
    assert [s.step for s in run.steps] == [c.step for c in session.calls]
    assert [s.at for s in run.steps] == [c.at for c in session.calls]
    assert run.steps[-1].total == sum(b.tokens for b in session.blocks)
    assert [s.unchanged_prefix for s in run.steps[1:]] == [s.total for s in run.steps[:-1]]
    assert run.steps[0].unchanged_prefix == 0
    assert {s.frontier for s in run.steps} == {0}
    assert run.sent == sum(s.total for s in run.steps)


def test_hidden_tokens_count_towards_the_trigger_and_not_in_totals() -> None:
    session = replace(coding(200, 500), window=100_000)
    policy = Policy("c", steps=(Step("compact", Compact()),))
    assert simulate(session, policy, rough).revisions == ()
    hidden = simulate(replace(session, hidden=40_000), policy, rough)
    (revision,) = hidden.revisions
    assert revision.tokens_before + hidden.hidden + hidden.steps[-1].added >= 70_000
    assert revision.tokens_before < 35_000


def test_reported_prompts_lead_until_the_first_revision() -> None:
    session = replace(coding(200, 500), window=100_000)
    calls = tuple(
        Call(c.step, c.model, c.at, Usage(uncached=c.step * 1_000)) for c in session.calls
    )
    policy = Policy("c", steps=(Step("compact", Compact()),))
    run = simulate(replace(session, calls=calls), policy, rough)
    (revision,) = run.revisions
    assert 69 <= revision.step <= 71


def test_prompts_of_the_recorded_context_say_nothing_once_ours_differs() -> None:
    session = replace(coding(200, 500), window=100_000)
    calls = tuple(
        Call(c.step, c.model, c.at, Usage(uncached=70_400 if c.step >= 60 else 30_000))
        for c in session.calls
    )
    eager = Compact(progress=0.0, rearm=0.0, summary_tokens=200)
    policy = Policy("c", steps=(Step("compact", eager),))
    assert len(simulate(replace(session, calls=calls), policy, rough).revisions) == 1


def test_contexts_of_an_editing_policy_list_read_back_in_every_prompt() -> None:
    session = replace(coding(20, 500), hidden=6_000)
    [tool] = sized({"tools": [definition("anthropic")]}, rough)
    for steps, added in (((), 0), ((Step("offload", Offload()),), tool.tokens)):
        run = simulate(session, Policy("p", steps=steps), rough)
        sent = simulate_cache(run, session.calls, Terms(rules="anthropic"))
        assert {step.added for step in run.steps} == {added}
        assert sent.uses[0].prompt - sent.recorded[0].prompt == added


def test_with_a_small_setup_read_back_joins_at_the_first_revision() -> None:
    session = replace(coding(60, 500), hidden=5_000)
    run = simulate(session, Policy("p", steps=(Step("offload", Offload()),)), rough)
    first = run.revisions[0].step
    [tool] = sized({"tools": [definition("anthropic")]}, rough)
    assert first > 1
    sent = simulate_cache(run, session.calls, Terms(rules="anthropic"))
    for use, step in zip(sent.uses, run.steps, strict=True):
        assert use.prompt == step.total + 5_000 + (tool.tokens if step.step >= first else 0)
    assert sent.uses[first - 1].read == 0, "the definition is before everything else"
    assert sent.uses[first].read > 5_000
