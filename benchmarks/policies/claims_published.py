"""The numbers that the systems of docs/sources.md publish, for benchmarks/policies/claims.py.

Left out: versions and dates, numbers of examples, and numbers that follow from others.
"""

from __future__ import annotations

from benchmarks.policies import claims_measured as made
from benchmarks.policies.claims_measured import (
    Claim,
    Ours,
    cited,
    code,
    least,
    most,
    only,
    over,
    preset,
    said,
)
from compaction import tokens
from compaction.advice import use_lint
from compaction.board.board import MOST_ENTRIES, BoardSize
from compaction.budget.budget import WARN, delay_of
from compaction.cache.simulator import TTL_MS
from compaction.policies.presets import PRESETS
from compaction.prices.prices import price, window
from compaction.summaries.summary import NINE
from compaction.topic.topic import ROUNDS
from sessions.actions.memory.received import KNOWN_SIZE
from sessions.models import Budget
from sessions.provider import TEMPERATURE

DESIGN = "differs by design"
MODEL = "needs a model"
UNLOGGED = "cannot be measured"
THEIRS = "their own use"
NOTHING = Ours("–", lambda _: None)
CLAUDE, GPT = price("claude-sonnet-4-5"), price("gpt-4o")


def same(claim: str, number: float, unit: str, place: str) -> Claim:
    """A setting of a preset that has to be as published."""
    return Claim(claim, said(number, unit), preset(place), only(number), unit)


CODEGENIUS = (
    Claim("newest rounds kept, too few", "5 rounds",
          preset("sliding-window: window.recents"), least(6), "messages"),
    same("tool inputs and outputs leave when older than", 5, "steps", "offload-first: offload.age"),
    same("they leave together, once in", 5, "steps", "offload-first: offload.batch"),
    Claim("cost of offloading in batches", "lower",
          cited("sources.md", "| in batches of 5 | $0.3508 | $0.8225 | $2.0511 |", 2.0511 / 5.1448),
          most(1), "%"),
    Claim("Claude's cache read, of the input price", "0.1 ×",
          code("price table", lambda: CLAUDE.cache_read / CLAUDE.input), only(0.1), "×"),
    Claim("cache write", "1.25 ×",
          code("price table", lambda: CLAUDE.cache_write_5m / CLAUDE.input), only(1.25), "×"),
    Claim("tokens with a file once, then diffs", "fewer",
          cited("policies/strategies.md", "dedupe alone sends 90.1 %", 0.901), most(1), "%"),
    same("files are outlined when longer than", 3_000, "lines", "offload-first: outline.lines"),
    Claim("an outline, of its file", "less",
          cited("policies/strategies.md", "shrink to 10 to 40 %", 0.4), most(1), "%"),
    Claim("sections of a summary", "9", code("`NINE`", lambda: len(NINE)), only(9), ""),
    Claim("summary of over 100,000 tokens", "2,000 to 3,000 tokens",
          code("synthetic, extractive", lambda: tokens.count(made.summary())),
          most(3_000)),
    Claim("a summary, in the English digest", "2 to 3 KB",
          code("the same summary", lambda: len(made.summary().encode()) / 1_000), most(3), "KB",
          "limited in [tokens](../../../docs/policies/strategies.md#compaction)"),
    same("share of the window that starts a summary", 0.7, "%", "offload-first: compact.trigger"),
    same("a new topic compacts history over", 3_000, "tokens", "offload-first: compact.least_cold"),
    same("while the cache is warm, of over", 30_000, "tokens", "offload-first: compact.least_warm"),
    Claim("a cache stays warm", "5 minutes",
          code("default TTL", lambda: TTL_MS["5m"] / 60_000), only(5), "minutes"),
    Claim("rounds read for a new topic", "3", code("`ROUNDS`", lambda: ROUNDS), only(3), ""),
    Claim("read from the cache", "higher",
          over("offload-first, read", "`offload-first` less a window's"), least(0), "%"),
    Claim("tokens sent", "fewer",
          over("offload-first, tokens", "`offload-first`"), most(1), "%"),
    Claim("complex tasks are solved better", "", NOTHING, why=MODEL),
)  # fmt: skip

MAYBEAI = (
    Claim("sessions it was tried on", "millions",
          cited("sources.md", "**527 Claude Code sessions**", 527), least(1e6), "sessions"),
    Claim("mean tool calls of a session", "50", over("steps", "model calls"), unit="calls",
          why=THEIRS),
    Claim("drift without it from", "step 20", NOTHING, why=MODEL),
    Claim("the plan is updated within", "3 to 10 tool calls",
          code("`recitation: recite.stale`", lambda: PRESETS["recitation"].recite.stale),
          (3, 10), "calls"),
    Claim("layers of a context", "4",
          cited("policies/strategies.md", "A context has four layers", 4), only(4), ""),
    Claim("the example's first context", "3,000 to 4,000 tokens", NOTHING, why=THEIRS),
    Claim("context after three tables of 756 rows", "15,000 to 20,000 tokens",
          code("synthetic, `recitation`", made.context_of_tables), most(20_000)),
    Claim("rows shown of a table of 756", "100",
          code("`recitation`", lambda: made.rows_shown(756)), only(100), "rows"),
    same("what was read stays for", 1, "steps", "recitation: offload.age"),
    Claim("reciting raises the success rate by", "20 to 30 %", NOTHING, why=MODEL),
    Claim("plans are cut into steps of", "5 seconds", NOTHING,
          why=f"{DESIGN}: agents plan themselves"),
    Claim("tools to choose from, fewer than", "20",
          code("remark on a session's tools", lambda: use_lint.TOOLS), only(20), "tools"),
    Claim("tool calls that work with masks", "99 %", NOTHING, why=MODEL),
    Claim("tool output that leaves", "80 %",
          over("recitation, results", "tokens of results, `recitation`"), least(0.8), "%"),
    Claim("failures recovered when they stay visible", "30 → 70 % (+133 %)", NOTHING, why=MODEL),
    Claim("the window overflows without it after", "50 steps",
          code("synthetic, `passthrough`",
               lambda: made.steps_within("passthrough")), unit="steps", why=THEIRS),
    Claim("cost, of what it was", "50 %", over("recitation, cost", "`recitation`"), most(0.5),
          "%"),
    Claim("… under our default", "50 %", over("balanced, cost", "`balanced`"), most(0.5),
          "%"),
    Claim("tokens, of what they were", "50 %", over("recitation, tokens", "`recitation`"),
          most(0.5), "%"),
    Claim("long tasks that succeed", "50 → 96 % (+92 %)", NOTHING, why=MODEL),
    Claim("steps of a session", "20 → 50 and more (+150 %)",
          code("synthetic, `recitation`",
               lambda: made.steps_within("recitation")), least(50), "steps"),
    Claim("drift", "high → near zero", NOTHING, why=MODEL),
)  # fmt: skip

SHANNON = (
    *(Claim(f"window of {title}", f"{size:,} tokens",
            code("price table", lambda model=model: window(model) or 0), only(size))
      for title, model, size in (("GPT-4o", "gpt-4o", 128_000),
                                 ("Claude 3.5 Sonnet", "claude-3-5-sonnet", 200_000),
                                 ("Gemini 1.5 Pro", "gemini-1.5-pro", 2_000_000))),
    Claim("windows of open models", "4,000 to 32,000 tokens", NOTHING, why=THEIRS),
    Claim("input of GPT-4o, a million tokens", "$2.50",
          code("price table", lambda: GPT.input / 1_000), only(2.5), "$"),
    Claim("input of a chat of 50 rounds", "$0.0625",
          code("synthetic chat", lambda: made.chat_cost(50, 500)), most(0.0625), "$",
          "each call sends all"),
    *(Claim(f"tokens of “{text}”", f"{size}",
            code("o200k", lambda text=text: tokens.count(text)), only(size), "tokens",
            "GPT-4o's own vocabulary")
      for text, size in (("Hello world", 2), ("你好世界", 4), ("function foo() {}", 4))),
    Claim("characters per token, English", "about 4",
          code("our documents, o200k", lambda: made.per_token("docs", "*.md")), (3.5, 4.5), ""),
    Claim("characters per token, code", "about 3",
          code("our sources, o200k", lambda: made.per_token("compaction", "*.py")), (2.5, 3.5), ""),
    *(Claim(f"the estimate counts {what}", f"{number:g} characters per token",
            code("`estimate`", lambda t=text, c=chars: round(made.rule(t, c), 2)), only(number),
            "characters")
      for what, number, text, chars in (("text", 4, "a" * 40_000, 4), ("code", 3, "a" * 30_000, 3),
                                        ("Chinese", 1.5, "中" * 30_000, 4))),
    Claim("it adds per message", "5 tokens",
          code("`estimate`", lambda: tokens.estimate([""] * 1_000) / 1_100), only(5)),
    Claim("and a margin of", "10 %",
          code("`estimate`", lambda: tokens.estimate([""] * 1_000) / 5_000 - 1), only(0.1), "%"),
    *(Claim(f"the estimate's error on {what}", "10 to 15 %",
            code("our files, against o200k",
                 lambda given=given: made.estimate_error(*given)), most(0.15), "%")
      for what, given in (("text", ("docs", "*.md", 4)), ("code", ("compaction", "*.py", 3)))),
    Claim("the estimate's error on sessions", "10 to 15 %",
          over("error of the estimate", "models' counts"), most(0.15), "%"),
    *(same(what, number, unit, f"sliding-window: window.{field}")
      for what, field, number, unit in (
          ("first messages that stay", "primers", 3, ""),
          ("newest messages that stay", "recents", 20, ""),
          ("share of the budget that starts a cut", "trigger", 0.75, "%"),
          ("share of the budget after it", "target", 0.375, "%"),
          ("its note, at most", "summary_tokens", 400, "tokens"))),
    Claim("a budget of 50,000 is cut at", "37,500 tokens",
          code("synthetic", lambda: made.first_cut(50_000)[0]), (37_500, 38_250)),
    Claim("and comes to", "18,750 tokens",
          code("the same", lambda: made.first_cut(50_000)[1]), most(18_750)),
    Claim("500 messages of 100,000 tokens come to", "15,000 tokens",
          code("synthetic, `sliding-window`", lambda: made.after(500, 376)), most(15_000)),
    Claim("500 messages come to, with the note", "24",
          code("the same", lambda: made.messages_after(500, 376)), only(24), "messages",
          "a call keeps its result"),
    Claim("50 messages of 10,000 tokens: removed", "0 %",
          code("synthetic, `sliding-window`", lambda: made.removed(50, 380)), only(0), "%"),
    *(claim for count, left, share in ((100, 12_000, 0.52), (500, 15_000, 0.88),
                                       (1_000, 15_000, 0.94))
      for claim in (
          Claim(f"{count:,} messages of {count // 4},000 tokens come to", f"{left:,} tokens",
                code("the same", lambda n=count: made.after(n)), most(left)),
          Claim("… removed", said(share, "%"),
                code("the same", lambda n=count: made.removed(n)), least(share), "%"))),
    Claim("note on 10,000 characters", "500 characters",
          code("synthetic, extractive", made.note_chars), most(500), "characters"),
    Claim("temperature of the summarizer", "0.2",
          code("`TEMPERATURE`", lambda: TEMPERATURE), only(0.2), ""),
    same("first messages of clarifications", 5, "", "sliding-window-debugging: window.primers"),
    Claim("first messages for simple questions", "1",
          preset("sliding-window-qa: window.primers"), only(1), "",
          "its case for them has 2"),
    *(same(f"{case}: {what}", number, unit, f"sliding-window-{case}: window.{field}")
      for case, what, field, number, unit in (
          ("qa", "first messages", "primers", 2, ""), ("qa", "newest", "recents", 10, ""),
          ("qa", "messages", "messages", 30, ""), ("qa", "budget", "budget", 25_000, "tokens"),
          ("debugging", "trigger", "trigger", 0.85, "%"),
          ("debugging", "newest (or up to 50)", "recents", 30, ""),
          ("debugging", "messages", "messages", 100, ""),
          ("debugging", "budget", "budget", 75_000, "tokens"),
          ("long-task", "messages", "messages", 75, ""))),
    Claim("long-task: budget of a task", "300,000 tokens",
          code("`sliding-window-long-task: task_budget`",
               lambda: PRESETS["sliding-window-long-task"].task_budget), only(300_000), "tokens"),
    Claim("long-task: messages stored", "1,000", NOTHING,
          why=f"{DESIGN}: every original is kept"),
    Claim("levels of budgets", "3", code("`Budget.Scope`", lambda: len(Budget.Scope)), only(3), ""),
    Claim("a budget warns at", "80 %", code("`WARN`", lambda: WARN), only(0.8), "%"),
    *(Claim(f"delay at {said(share, '%')} of a budget", f"{delay:,} ms",
            code("`delay_of`", lambda share=share: delay_of(share)), only(delay), "ms")
      for share, delay in ((0.8, 50), (0.85, 300), (0.9, 750), (0.95, 1_500))),
    Claim("an estimate of a history takes", "under 5 ms",
          code("CPU, 500 messages, best of three", made.estimating_ms), most(5), "ms"),
    Claim("shaping it takes", "under 1 ms",
          code("CPU a step, cuts included", made.planning_ms), most(1), "ms"),
    Claim("a summary takes, by a model", "200 to 500 ms",
          code("CPU, extractive", made.summary_ms), None, "ms",
          f"{DESIGN}: by code"),
    Claim("all of a compaction takes", "about 500 ms",
          code("CPU, the three above", lambda: made.estimating_ms() + made.planning_ms()
               + made.summary_ms()), most(500), "ms"),
    Claim("a trigger is too late at", "95 %",
          code("least that is warned of",
               lambda: min(made.warned("trigger", [n / 100 for n in range(70, 96)]))),
          (0.76, 0.95), "%"),
    Claim("too few first messages with 50 newest", "1",
          code("most that are warned of",
               lambda: max(made.warned("primers", range(6), recents=50))), only(1), ""),
    Claim("a hard budget is too small at", "10,000 tokens",
          code("remark on budgets", lambda: use_lint.SMALL), only(10_000)),
    Claim("better, and soft", "50,000 tokens",
          code("the same", lambda: use_lint.USUAL), only(50_000)),
)  # fmt: skip

DAKOU = (
    Claim("tokens after 10 to 20 rounds", "some ten thousand",
          over("tokens after 15 steps", "after 15 steps"), why=THEIRS),
    Claim("summary of tens of thousands of tokens", "some thousand tokens",
          preset("seven-principles: compact.summary_tokens"), most(9_000)),
    Claim("a summary keeps, of what matters", "80 to 90 %",
          cited("reviews/reviews.md", "extractive, nine sections, window 60,000 | 23 | 25 | 98 %",
                0.98), least(0.8), "%"),
    Claim("… of what later calls needed", "80 to 90 %",
          cited("policies/strategies.md", "summary names 63, the", 63 / 110), least(0.8), "%"),
    Claim("calls a dashboard saves", "5 to 10",
          cited("policies/strategies.md", "of 1,108 queries 36 (3 %)", 36 / 58), least(5), "calls"),
    Claim("status queries it saves", "over 50 %",
          cited("policies/strategies.md", "of 1,108 queries 36 (3 %)", 36 / 1_108), least(0.5),
          "%"),
    Claim("efficiency of tasks +", "20 to 30 %", NOTHING, why=MODEL),
    Claim("removing old dashboards saves", "hundreds to thousands",
          code("synthetic", made.dashboards), least(200)),
    Claim("notes of a board, at most", "1,000",
          code("`MOST_ENTRIES`", lambda: MOST_ENTRIES), only(1_000), "notes"),
    Claim("notes of its example", "11",
          code("a board's usual size", made.notes_kept), only(11), "notes"),
    Claim("tokens of a board", "500 to 2,000",
          code("`BoardSize.tokens`", lambda: BoardSize().tokens), (500, 2_000)),
    Claim("a board saves of the history", "over 80 %",
          over("saved by the board", "board against content"), least(0.8), "%"),
    Claim("key notes a compaction keeps", "about 90 %",
          cited("policies/strategies.md", "all notes' first lines are in context", 1.0),
          least(0.9), "%"),
    Claim("searches with a board are more relevant by", "35 %", NOTHING,
          why=f"{UNLOGGED}: no log has judged searches"),
    Claim("a new agent understands a task sooner by", "50 %", NOTHING, why=MODEL),
    Claim("summary entries for a file edited 10 times", "1",
          code("synthetic", lambda: made.entries_of_edits(10)), only(1), ""),
    Claim("merging saves of a summary", "30 to 40 %",
          over("saved by merging", "without a budget"), least(0.3), "%"),
    same("results are split when over", 18_000, "tokens", "seven-principles: shard.over"),
    same("into at most", 8, "parts", "seven-principles: shard.parts"),
    Claim("shared memory", "some thousand tokens",
          code("`KNOWN_SIZE`", lambda: KNOWN_SIZE.tokens), most(9_000)),
    Claim("100 tools take", "8,000 to 10,000 tokens", NOTHING, why=THEIRS),
    Claim("the first prompt shrinks by", "60 to 70 %",
          cited("tools/tools.md", "29 % of the definitions' tokens", 0.29), unit="%",
          why=f"{UNLOGGED}: logs lack definitions; ours: never used"),
    Claim("fewer wrong tools by", "40 %", NOTHING, why=MODEL),
    Claim("a flat list of tools works below", "20 tools",
          code("remark on a session's tools", lambda: use_lint.TOOLS), only(20), "tools"),
    Claim("tokens, of what they were", "20 to 30 %",
          over("seven-principles, tokens", "`seven-principles`"), most(0.3), "%"),
    Claim("… under our default", "20 to 30 %", over("balanced, tokens", "`balanced`"),
          most(0.3), "%"),
    Claim("less time a task by", "20 to 40 %", NOTHING, why=MODEL),
    Claim("rounds of a session", "20 to 30 → 100 and more",
          code("synthetic, `seven-principles`",
               lambda: made.steps_within("seven-principles")), least(100), "steps"),
)  # fmt: skip

CLAIMS = {"CodeGenius": CODEGENIUS, "MaybeAi": MAYBEAI, "Shannon": SHANNON, "Dakou": DAKOU}
"""Claims by source, a heading of docs/sources.md."""
