"""Hypothesis strategies for sessions with all that real ones have: pins, failures, open ends."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from compaction.cache.economy import Objective, TTLSetting
from compaction.context.blocks import FileAction, FileRef
from compaction.context.session import Session
from compaction.policies.policy import Policy, Step
from compaction.proposals.strategy import Strategy
from compaction.recitation.dashboard import GUIDANCE
from compaction.recitation.recite import Recite
from compaction.strategies import STRATEGIES
from tests.build import Talk
from tests.compaction.dice import Dice

TEXTS = [
    "ok",
    "line with alpha_1\n" * 40,
    "a,b\n1,2\n3,4\n" * 60,
    '{"k": 1, "z": [2]}',
    "é文\ud800 " * 90,
]


def talks() -> st.SearchStrategy[Session]:
    """Sessions of up to some forty model responses."""
    return st.one_of(st.binary(max_size=400), st.binary(min_size=300, max_size=900)).map(
        lambda data: _talk(Dice(data))
    )


def _talk(dice: Dice) -> Session:
    talk = Talk()
    window = (800, 1_500, 3_000, 200_000)[dice(4)]
    if dice(2):
        talk.system("be careful " * (1 + dice(60)))
    talk.user("please " * (1 + dice(200)), pinned=dice(4) == 3)
    while dice.left():
        talk.respond()
        if dice(4) == 3:
            talk.think("so " * 30)
        if dice(3) == 2:
            talk.say("done " * (1 + dice(120)), pinned=dice(10) == 9)
        _calls(dice, talk)
        if dice(6) == 5:
            text = "next " * (1 + dice(200))
            if dice(3) == 2:
                text = f"{text}<dashboard>{text}</dashboard> go on"
            talk.user(text, pinned=dice(6) == 5)
    return talk.session(window)


def _calls(dice: Dice, talk: Talk) -> None:
    pinned = dice(13) == 12
    uses = []
    for _ in range(dice(4)):
        path = ("src/a.py", "src/b.py", "src/c.py", "todo.md")[dice(4)]
        tool = ("Read", "Bash", "TodoWrite", "Write")[dice(4)]
        actions: dict[str, FileAction] = {"Read": "read", "Write": "write"}
        file = FileRef(path, actions[tool]) if tool in actions else None
        given: dict[str, Any] = {"path": path, "content": TEXTS[dice(len(TEXTS))]}
        if tool == "Bash":
            given = {"command": ("grep -n alpha src/a.py", "pytest -q")[dice(2)], **given}
        elif tool == "TodoWrite":
            given["todos"] = [{"content": f"part {n}", "status": "pending"} for n in range(dice(4))]
        uses.append(talk.call(tool, given, file=file, pinned=pinned and dice(2) == 1))
    for use in uses:
        if dice(16) != 15:
            error = dice(5) == 4
            talk.result(use, TEXTS[dice(len(TEXTS))], error=error, pinned=pinned)


def _drawn(kind: Any, one: Field[Any]) -> st.SearchStrategy[Any]:
    """Values of one parameter: those that its metadata names, or what there is for its type."""
    if "drawn" in one.metadata:
        return st.sampled_from(one.metadata["drawn"])
    if kind is bool:
        return st.booleans()
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        return st.sampled_from([one.default, (), ("Read",), ("Bash", "Write")])
    return st.sampled_from([one.default, one.metadata.get("min", one.default)])


def steps() -> st.SearchStrategy[Step]:
    """A step of any strategy there is."""
    return st.one_of(*(_steps_of(strategy) for strategy in STRATEGIES.values()))


def _steps_of(strategy: Strategy) -> st.SearchStrategy[Step]:
    form = strategy.parameters
    kinds = get_type_hints(form)
    drawn = {one.name: _drawn(kinds[one.name], one) for one in fields(form)}
    return st.builds(form, **drawn).map(lambda parameters: Step(strategy.name, parameters))


def policies() -> st.SearchStrategy[Policy]:
    """Policies of one to three steps: each strategy alone, and composed in any order."""
    recite = st.builds(
        Recite,
        tokens=st.integers(100, 400),
        observations=st.integers(0, 5),
        files=st.integers(0, 5),
        stale=st.integers(1, 12),
        remind=st.booleans(),
        dashboard=st.sampled_from([0, 60, 300]),
        operations=st.integers(0, 6),
        guidance=st.sampled_from([GUIDANCE, (), ("</dashboard>",)]),
    )
    return st.builds(
        lambda steps, recite, objective, ttl: Policy(
            "drawn", steps=tuple(steps), recite=recite, objective=objective, ttl=ttl
        ),
        st.lists(steps(), min_size=1, max_size=3),
        st.one_of(st.none(), recite),
        st.sampled_from(get_args(Objective)),
        st.sampled_from(get_args(TTLSetting)),
    )
