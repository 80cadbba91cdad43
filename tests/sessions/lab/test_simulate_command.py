"""The command `simulate`: the same figures as the lab."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compaction.context.session import Usage
from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.lab import simulations
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.lab.simulated_figures import figures_of, recorded_figures, recording_of
from sessions.actions.lab.unstored import recording_of_log
from sessions.actions.policies.policies import save_version
from sessions.importers import records
from sessions.management.commands.simulate import _ttl_apart
from tests.sessions.lab.simulated import DRAFTED, done, log, store
from tests.sessions.made import user


def command(*arguments: str) -> Any:
    out = StringIO()
    call_command("simulate", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_the_command_gives_the_figures_of_the_lab(team, idle, tmp_path):
    stored = store(team, log("x", 9), log("y", 14))
    draft = save_version(team, "eager", DRAFTED, "", "", None, COMMAND)
    simulation = simulations.ask(team, {"by": "query"}, draft, [], "", COMMAND)
    done(simulation.job)
    file = tmp_path / "eager.yaml"
    file.write_text("steps: [{strategy: offload, parameters: {age: 1, batch: 1}}]")
    for policy in ("eager", "eager@1", str(file)):
        reply = command("x", str(stored[1].pk), "--policy", policy)
        assert (reply["policy"]["name"], reply["sessions"]) == ("eager", 2)
        for row in reply["per_session"]:
            in_lab = simulation.results.get(session__external_id=row["id"], version=draft).figures
            for name in row.keys() - {"id", "ms_per_step"}:
                assert row[name] == in_lab[name], name
        assert reply["tokens_sent"] == sum(row["tokens_sent"] for row in reply["per_session"])


@pytest.mark.parametrize(
    ("policy", "objective", "taken"),
    [
        ("balanced", "cheap", "balanced"),
        ("balanced", "lean", "balanced-lean"),
        ("balanced-lean", "cheap", "balanced"),
        ("balanced-lean", "lean", "balanced-lean"),
    ],
)
def test_an_objective_takes_the_preset_that_has_numbers_for_it(team, policy, objective, taken):
    store(team, log("x", 3))
    reply = command("x", "--policy", policy, "--objective", objective)
    assert reply["asked"] == {"policy": policy, "objective": objective, "heeded": True}
    ran = reply["policy"]
    assert (ran["name"], ran["objective"]) == (taken, objective)
    assert ran["steps"] == to_dict(PRESETS[taken])["steps"]


def test_the_text_names_the_strategies_that_acted(team):
    store(team, log("x", 30))
    for policy, said in (("offload-first", " by offload"), ("passthrough", "No strategy acted.")):
        out = StringIO()
        call_command("simulate", "x", "--policy", policy, stdout=out)
        assert said in out.getvalue()


def test_an_objective_that_no_step_asks_for_is_said(team):
    store(team, log("x", 3))
    out, err = StringIO(), StringIO()
    given = ("x", "--policy", "offload-first", "--objective", "lean", "--json")
    call_command("simulate", *given, stdout=out, stderr=err)
    reply = json.loads(out.getvalue())
    assert reply["asked"] == {"policy": "offload-first", "objective": "lean", "heeded": False}
    assert reply["policy"] == to_dict(PRESETS["offload-first"])
    said = "--objective lean has no effect: no step of offload-first uses it.\n"
    assert err.getvalue() == said


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (
            "eager@7",
            "'eager@7' is not a file, and is not a version of eager; there is only eager@1.",
        ),
        ("again@7", "is not a version of again; there are again@1 to again@2."),
        ("balanced@7", "is not a version of balanced; there is only balanced@1."),
        ("missing@1", "is not a policy of this team; presets are always available: balanced"),
    ],
)
def test_a_version_that_is_not_there_names_those_that_are(team, policy, sentence):
    save_version(team, "eager", DRAFTED, "", "", None, COMMAND)
    for age in (1, 2):
        step = {"strategy": "offload", "parameters": {"age": age, "batch": 1}}
        save_version(team, "again", {"steps": [step]}, "", "", None, COMMAND)
    store(team, log("x", 3))
    with pytest.raises(CommandError) as problem:
        command("x", "--policy", policy)
    assert sentence in str(problem.value)
    assert problem.value.returncode == 2


def test_a_log_that_is_not_stored_gives_what_it_gives_when_stored(team):
    made = log("log", 20)
    made.records[30:30] = [
        records.Clear(("t2", "t3"), key="clear"),
        user("And now?", key="aside"),
        records.Rewind(("aside",), key="back"),
    ]
    made.records[45:45] = [
        records.Compaction("auto", keep=("b12",), key="cut"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary"),
    ]
    made.records.append(records.Call("late", model="claude-sonnet-4-5", usage=None))
    usage = records.Usage(uncached=9_000, output=40)
    made.records += [records.Call(f"c{step}", usage=usage) for step in (1, 5, 18)]
    unstored = recording_of_log(made)
    [stored] = store(team, made)
    recording = recording_of(stored)
    assert unstored is not None
    assert unstored.value.calls == recording.value.calls
    assert unstored.value.blocks == recording.value.blocks
    assert (unstored.permille, unstored.value.hidden) == (stored.token_ratio, stored.hidden_tokens)
    assert unstored.lived.steps == recording.lived.steps
    assert recorded_figures(unstored) == recorded_figures(recording)


def test_a_stored_run_carries_the_same_figures(team):
    [stored] = store(team, log("s", 10))
    run = simulate_session(stored, "offload-first")
    own = figures_of(recording_of(stored), PRESETS["offload-first"])
    for name in own.figures.keys() - {"ms_per_step"}:
        assert run.figures[name] == own.figures[name]


def test_definitions_are_unknown_where_no_log_shows_them(team):
    store(team, log("x", 3))
    row = command("x", "--policy", "passthrough")
    assert row["definition_tokens_sent"] is None and row["definitions_microusd"] is None
    out = StringIO()
    call_command("simulate", "x", "--policy", "passthrough", stdout=out)
    assert "Tool definitions: unknown" in out.getvalue()


def test_unused_definitions_are_priced_in_json_and_in_the_table(team):
    shown = log("x", 3)
    says = [{"name": name, "description": f"does {name}"} for name in ("Read", "never")]
    setup = records.Message("system", [{"type": "tools", "tools": says}], at=0)
    shown.records.insert(0, setup)
    store(team, shown, log("y", 3))
    answer = command("x", "y", "--policy", "passthrough")
    rows = {row["id"]: row for row in answer["per_session"]}
    assert rows["y"]["definition_tokens_sent"] is None
    sent, unused = (
        rows["x"][name] for name in ("definition_tokens_sent", "unused_definition_tokens_sent")
    )
    assert 0 < unused < sent == answer["definition_tokens_sent"]
    assert 0 < rows["x"]["unused_definitions_microusd"] < rows["x"]["definitions_microusd"]
    assert answer["unused_definitions_microusd"] == rows["x"]["unused_definitions_microusd"]
    out = StringIO()
    call_command("simulate", "x", "y", "--policy", "passthrough", stdout=out)
    assert f"Tool definitions, in 1 of 2 sessions: {sent:,} tokens sent" in out.getvalue()


@pytest.mark.parametrize(
    ("cost", "ttl", "base", "said"),
    [
        (80, 104, 100, "Of the change in cost, +4.0% by the TTL and -24.0% by edits."),
        (80, 100, 100, ""),
        (None, 104, 100, ""),
        (80, None, 100, ""),
        (80, 104, None, ""),
    ],
)
def test_the_effect_of_the_ttl_stands_apart(cost, ttl, base, said):
    assert _ttl_apart(cost, ttl, base).strip() == said


def test_the_recorded_contexts_are_priced_with_the_ttl_of_a_policy(team):
    (stored,) = store(team, log("x", 9))
    recording = recording_of(stored)
    value = recording.value
    costs = {
        ttl: recording.lived_cost_under(replace(PRESETS["passthrough"], ttl=ttl))
        for ttl in ("recorded", "5m", "1h")
    }
    assert costs["recorded"] == costs["5m"] == recording.lived_cost
    assert recording.terms.ttl == "5m" and costs["1h"] == costs["5m"], "no longer than asked for"
    hour = [replace(call, usage=Usage(uncached=9, cache_write_1h=90)) for call in value.calls]
    recording = replace(recording, value=replace(value, calls=tuple(hour)))
    assert recording.terms.ttl == "1h"
    assert recording.lived_cost_under(PRESETS["balanced"]) < recording.lived_cost
