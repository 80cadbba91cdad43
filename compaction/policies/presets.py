"""Policies that reproduce known systems, and our own."""

from __future__ import annotations

from compaction.policies.policy import Policy, Step
from compaction.recitation.recite import Recite
from compaction.seen.reading import READING
from compaction.seen.ripening import SHOWS
from compaction.strategies.compact_settings import Compact
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.externalise import Externalise
from compaction.strategies.offload import Offload
from compaction.strategies.outline import Outline
from compaction.strategies.payback_settings import Payback
from compaction.strategies.replace import Replace
from compaction.strategies.shard import Shard
from compaction.strategies.window import Window

BOARD = 2_000
"""Tokens of the board in a context: Dakou's upper value."""

PRESETS: dict[str, Policy] = {
    "balanced": Policy(
        "balanced",
        steps=(
            Step("externalise", Externalise(over=8_000, exclude=SHOWS)),
            Step(
                "payback",
                Payback(
                    results=2,
                    readings=45,
                    done=8,
                    settled=5,
                    said=0,
                    patience=10.0,
                    full=0.85,
                    minimum=60,
                ),
            ),
            Step("compact", Compact(trigger=0.90)),
        ),
        reserve=16_384,
        board=BOARD,
        ttl="mixed",
    ),
    "balanced-lean": Policy(
        "balanced-lean",
        steps=(
            Step("externalise", Externalise(over=8_000, exclude=SHOWS)),
            Step(
                "payback",
                Payback(
                    results=5,
                    readings=45,
                    done=8,
                    settled=5,
                    said=0,
                    haste=2.0,
                    listed=0.05,
                    minimum=25,
                ),
            ),
            Step("compact", Compact(trigger=0.90)),
        ),
        reserve=16_384,
        board=BOARD,
        objective="lean",
        ttl="mixed",
    ),
    "offload-first": Policy(
        "offload-first",
        steps=(
            Step("dedupe", Dedupe(within=4)),
            Step("outline", Outline()),
            Step("offload", Offload()),
            Step("compact", Compact(on_new_topic=True)),
        ),
        reserve=16_384,
    ),
    "recitation": Policy(
        "recitation",
        steps=(
            Step("externalise", Externalise(exclude=READING)),
            Step("offload", Offload(age=1, batch=1, only=READING, inputs=False)),
            Step("compact", Compact(trigger=0.85, keep_failures=True)),
        ),
        reserve=16_384,
        recite=Recite(),
    ),
    "seven-principles": Policy(
        "seven-principles",
        steps=(
            Step("shard", Shard()),
            Step("replace", Replace()),
            Step("compact", Compact(trigger=0.85, form="progress", on_task_done=True)),
        ),
        reserve=16_384,
        board=BOARD,
        recite=Recite(tokens=1_500, observations=0, files=0, dashboard=1_000),
    ),
    "sliding-window": Policy("sliding-window", steps=(Step("window", Window(budget=32_000)),)),
    "sliding-window-qa": Policy(
        "sliding-window-qa",
        steps=(Step("window", Window(primers=2, recents=10, budget=25_000, messages=30)),),
    ),
    "sliding-window-debugging": Policy(
        "sliding-window-debugging",
        steps=(
            Step(
                "window",
                Window(primers=5, recents=30, trigger=0.85, budget=75_000, messages=100),
            ),
        ),
    ),
    "sliding-window-long-task": Policy(
        "sliding-window-long-task",
        steps=(Step("window", Window(budget=50_000, messages=75)),),
        task_budget=300_000,
    ),
    "passthrough": Policy("passthrough"),
}
"""Policies that reproduce known systems, and our own.

`balanced` (ours, the default, by measurement: docs/policies/policies.md): results of commands and
searches over 8,000 tokens enter as excerpts; results that are no longer needed are offloaded when
that pays, readings of files only once they were changed, read again, or their task is over, and
lines of them stay; if 90 % of the room is still full, history is summarized. What the agent said
stays. The cache TTL is five minutes, and an hour for tools and system prompt if the client asks for
an hour. The board follows each summary and begins a task's next session (Dakou).

`balanced-lean` (ours): optimized for context size. Edits wait less, and stubs keep more.

`offload-first` (CodeGenius): files once, then diffs; outlines of files over 3,000 lines; offload
with age 5 and batch 5; compaction at 70 % of the window minus the reserve, and on a new topic. The
reserve is pi-mono's 16,384.

`recitation` (MaybeAi): results of reading tools stay for one step (ours) and are never shortened;
other results over 2,000 tokens (ours) enter as excerpts; failures stay until resolved; at most
1,000 tokens (ours) are recited; at 85 % of the room (ours), history is summarized without the
failures.

`seven-principles` (Dakou): results over 18,000 tokens enter in up to 8 parts; repeated calls and
dashboards of agents keep their newest result; a dashboard is recited (at most 1,000 tokens, ours);
at 85 % of the room (ours: Dakou says near the limit) and once a task is done, everything before
the last tool call is summarized in Dakou's form, in several parts if it is long, with operations
merged by file and command. From other systems: user messages that stay (Codex CLI), minimum
progress (OpenHands SDK), the recited to-do list (MaybeAi), the reserve (pi-mono). The board follows
each summary and begins a task's next session; sharing and the tool graph are settings of the team.

`sliding-window` (Shannon): 3 primers, 20 recents, trigger 75 %, target 37.5 % of a budget of
32,000: its medium window, whose target is the 12,000 of its table (docs/sources.md, Published
reductions). Its cases, by messages and tokens of an agent's budget: `-qa` 30 and 25,000,
`-debugging` 100 and 75,000 with trigger 85 %, `-long-task` 75 and Shannon's usual 50,000, with a
budget of 300,000 tokens for each task.

`passthrough` changes nothing.
"""

DOES: dict[str, str] = {
    "balanced": (
        "Offloads results that are no longer needed once that saves more than the cache it breaks; "
        "summarizes history at 90 % of the window. Optimized for cost."
    ),
    "balanced-lean": (
        "As balanced, but optimized for context size: edits earlier, so less of what is needed "
        "later is in context, though its stubs are longer."
    ),
    "offload-first": (
        "Shows a file once, then as differences; outlines long files; offloads results after 5 "
        "steps, 5 at a time; summarizes at 70 % of the window and on a new topic."
    ),
    "recitation": (
        "Drops what reading tools returned after 1 step; repeats the plan and open failures at the "
        "end of each request; summarizes at 85 % of the window."
    ),
    "seven-principles": (
        "Splits results over 18,000 tokens; keeps the newest of repeated calls; repeats a "
        "dashboard at the end of each request; summarizes at 85 % and when a task is done."
    ),
    "sliding-window": (
        "Keeps the first 3 and the newest 20 messages in 32,000 tokens, with a short summary "
        "between; cuts at 75 %."
    ),
    "sliding-window-qa": (
        "For questions and answers: the first 2 and the newest 10 messages, in 25,000 tokens or 30 "
        "messages."
    ),
    "sliding-window-debugging": (
        "For debugging: the first 5 and the newest 30 messages, in 75,000 tokens or 100 messages; "
        "cuts at 85 %."
    ),
    "sliding-window-long-task": (
        "For long tasks: the first 3 and the newest 20 messages, in 50,000 tokens or 75 messages, "
        "and at most 300,000 tokens for each task."
    ),
    "passthrough": (
        "Leaves every context as it is. The agent's own compactions are left out too, so contexts "
        "grow larger than recorded and can cost more."
    ),
}
"""What each preset does and how it differs from the others, in its own sentence."""

FOR_LEAN = {"balanced": "balanced-lean"}
"""Presets whose numbers differ by objective: the cheap one, and its lean counterpart."""
