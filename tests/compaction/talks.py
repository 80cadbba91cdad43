"""Hypothesis strategies for sessions with all that real ones have: pins, failures, loose ends."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from compaction.cache.economy import Lifetime, Objective
from compaction.context import FileAction, FileRef
from compaction.files.reading import READING
from compaction.policies.policy import Policy, Step
from compaction.recitation.dashboard import GUIDANCE
from compaction.recitation.recite import Recite
from compaction.session import Session
from compaction.strategies.compact import Compact
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.externalise import Externalise
from compaction.strategies.offload import Offload
from compaction.strategies.outline import Outline
from compaction.strategies.payback import Payback
from compaction.strategies.replace import Replace
from compaction.strategies.shard import Shard
from compaction.strategies.window import Window
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


def _offloads() -> st.SearchStrategy[Step]:
    return st.builds(
        Offload,
        age=st.integers(0, 4),
        batch=st.integers(1, 4),
        unit=st.sampled_from(["steps", "turns"]),
        minimum=st.integers(1, 60),
        exclude=st.sampled_from([(), ("Read",)]),
        only=st.sampled_from([(), READING]),
        inputs=st.booleans(),
        keep_failures=st.booleans(),
    ).map(lambda parameters: Step("offload", parameters))


def _compacts() -> st.SearchStrategy[Step]:
    return st.builds(
        Compact,
        trigger=st.sampled_from([0.3, 0.5, 0.7, 0.9]),
        summary_tokens=st.integers(200, 1_000),
        user_tokens=st.integers(0, 400),
        progress=st.floats(0, 0.3),
        rearm=st.floats(0, 0.3),
        keep_failures=st.booleans(),
        on_new_topic=st.booleans(),
        on_task_done=st.booleans(),
        least_cold=st.integers(0, 2_000),
        least_warm=st.integers(0, 2_000),
    ).map(lambda parameters: Step("compact", parameters))


def _windows() -> st.SearchStrategy[Step]:
    return st.builds(
        Window,
        primers=st.integers(0, 5),
        recents=st.integers(0, 20),
        trigger=st.sampled_from([0.4, 0.75]),
        target=st.floats(0.05, 0.9),
        budget=st.sampled_from([0, 600, 3_000]),
        progress=st.floats(0, 0.3),
        rearm=st.floats(0, 0.3),
        messages=st.sampled_from([0, 5, 20]),
    ).map(lambda parameters: Step("window", parameters))


def _entries() -> st.SearchStrategy[Step]:
    dedupe = st.builds(Dedupe, within=st.integers(0, 3), minimum=st.integers(1, 60))
    outline = st.builds(Outline, lines=st.integers(10, 60), minimum=st.integers(1, 60))
    externalise = st.builds(
        Externalise,
        over=st.integers(50, 300),
        rows=st.integers(1, 30),
        head=st.integers(0, 300),
        tail=st.integers(0, 300),
        keep_failures=st.booleans(),
    )
    shard = st.builds(Shard, over=st.integers(100, 300), parts=st.integers(2, 9))
    replace = st.builds(
        Replace, batch=st.integers(1, 4), minimum=st.integers(1, 60), dashboards=st.booleans()
    )
    return st.one_of(
        shard.map(lambda parameters: Step("shard", parameters)),
        replace.map(lambda parameters: Step("replace", parameters)),
        dedupe.map(lambda parameters: Step("dedupe", parameters)),
        outline.map(lambda parameters: Step("outline", parameters)),
        externalise.map(lambda parameters: Step("externalise", parameters)),
    )


def _paybacks() -> st.SearchStrategy[Step]:
    return st.builds(
        Payback,
        results=st.integers(0, 4),
        readings=st.integers(0, 8),
        done=st.integers(0, 3),
        inputs=st.integers(0, 8),
        patience=st.sampled_from([0.0, 0.5, 2.5]),
        haste=st.sampled_from([0.0, 1.0]),
        full=st.sampled_from([0.3, 0.8]),
        minimum=st.sampled_from([1, 50]),
        exclude=st.sampled_from([(), ("Bash",)]),
    ).map(lambda given: Step("payback", given))


def policies() -> st.SearchStrategy[Policy]:
    """Policies of one to three steps: each strategy alone, and composed in any order."""
    step = st.one_of(_offloads(), _paybacks(), _compacts(), _windows(), _entries())
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
        lambda steps, recite, objective, lifetime: Policy(
            "drawn", steps=tuple(steps), recite=recite, objective=objective, lifetime=lifetime
        ),
        st.lists(step, min_size=1, max_size=3),
        st.one_of(st.none(), recite),
        st.sampled_from(get_args(Objective)),
        st.sampled_from(get_args(Lifetime)),
    )
