"""Whose rules cache the prompts of a model, and the figures in which those rules differ."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Rules = Literal["anthropic", "openai", "gemini", "prefix", "none", "unknown"]
"""Whose cache is simulated. `prefix`: providers that keep the longest prefix and publish no more;
`none`: no cache, every token is fresh; `unknown` where nothing is known, and nothing claimed."""

Confidence = Literal["guaranteed", "likely", "best-effort"]
"""How far a prediction may be relied on: what the provider promises (that there is no cache, that
another prefix is not read), what its exact rules say, what an automatic cache mostly does."""

_HOUR_MS = 3_600_000

_OPENAI = re.compile(r"(?:gpt|chatgpt|codex|o[1-9])(?:-|$)")
_PREFIX = re.compile(r"(?:deepseek|kimi|moonshot|grok|glm|qwen|minimax|mimo|hy3)")


def bare(model: str) -> str:
    """The name of a model without the gateway before it."""
    return model.lower().rpartition("/")[2]


def rules_of(model: str) -> Rules:
    """By whose rules the prompts of a model are cached, as its name tells."""
    name = bare(model)
    if "claude" in model.lower():
        return "anthropic"
    if _OPENAI.match(name):
        return "openai"
    if name.startswith("gemini"):
        return "gemini"
    return "prefix" if _PREFIX.match(name) else "unknown"


class Kept(NamedTuple):
    """How an automatic cache keeps prefixes: in which steps, less what lag, and how long (ms).

    Reads are whole multiples of `step`, less `lag`; `minimum` tokens are the least, and a step is
    read only once `behind` tokens follow it. `answers` tells whether the response is kept as well,
    `writes` whether writing has a price of its own.
    """

    step: int
    lag: int
    minimum: int
    lifetime: int
    answers: bool = False
    writes: bool = False
    behind: int = 0


EARLY_OPENAI = Kept(128, 0, 1_024, 600_000)
"""OpenAI's models before GPT-5.5: 5 to 10 minutes without use, an hour at most."""

_PLAIN = Kept(64, 0, 64, _HOUR_MS, answers=True)

_KEPT: dict[Rules, tuple[tuple[str, Kept], ...]] = {
    "openai": (
        (r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9])", Kept(1_024, 256, 1_024, 1_800_000, writes=True)),
        (r"gpt-5\.5", Kept(512, 128, 1_024, 24 * _HOUR_MS)),
        (r"", EARLY_OPENAI),
    ),
    "gemini": (
        (r"gemini-3", Kept(4_096, 0, 4_096, _HOUR_MS, behind=1_220)),
        (r"", Kept(2_048, 0, 2_048, _HOUR_MS)),
    ),
}
"""By the beginning of a model's name, first match. Minimums and lifetimes of OpenAI are published,
steps are those of the reads that recorded sessions report; Gemini publishes minimums only. All
with their sources in docs/cache.md."""


def kept_by(model: str, rules: Rules | None = None) -> Kept:
    """How an automatic cache keeps a model's prefixes; a plain one where its rules are no others.

    `rules` overrides whose they are, for models that are called by a name of their own.
    """
    rows = _KEPT.get(rules or rules_of(model), ((r"", _PLAIN),))
    return next(kept for pattern, kept in rows if re.match(pattern, bare(model)))


def strips_thinking(model: str) -> bool:
    """Whether a new human turn takes the thinking of earlier turns out of the prompt.

    Anthropic: Opus before 4.5, Sonnet before 4.6, every Haiku. OpenAI: reasoning of earlier turns
    is not kept up to GPT-5.5.
    """
    name = bare(model).replace(".", "-")
    if "haiku" in name or "claude-3" in name:
        return True
    if found := re.search(r"(opus|sonnet)-(\d{1,2})(?:-(\d{1,2})(?!\d))?", name):
        version = int(found[2]), int(found[3] or 0)
        return version < ((4, 5) if found[1] == "opus" else (4, 6))
    return bool(re.match(r"gpt-5(?!-[6-9]|-\d\d(?!\d))|o[1-9]-", name))
