"""Who writes a summary: code alone, or a model of Anthropic with code to fall back on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings

from compaction.extract import extractive
from compaction.plan import Count, Span


@dataclass(frozen=True, slots=True)
class Made:
    """A summary and how it came about.

    `maker` is who wrote it in the end, `note` says why that is not who was asked. `usage` and
    `cost_microusd` add up all requests, failed ones too; the cost is None without a price.
    """

    text: str
    maker: str
    model: str = ""
    note: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost_microusd: int | None = None


class Summarizer(Protocol):
    """Writes summaries of spans that hold no secrets any more."""

    @property
    def name(self) -> str:
        """Who it is, its model included: part of what a summary's digest is made of."""

    def summarize(self, span: Span, count: Count) -> Made:
        """A summary that has the form and is shorter than the span."""


@dataclass(frozen=True, slots=True)
class Extractive:
    """Reads a summary off the blocks; needs no model and costs nothing."""

    note: str = ""
    name: str = "extractive"

    def summarize(self, span: Span, count: Count) -> Made:  # noqa: ARG002
        """The same for the same span."""
        return Made(extractive(span), "extractive", note=self.note)


def chosen() -> Summarizer:
    """The summarizer of the settings; nothing leaves the machine unless they name Anthropic."""
    if settings.SUMMARIZER != "anthropic":
        return Extractive()
    if not os.environ.get("ANTHROPIC_API_KEY"):
        return Extractive("Anthropic was chosen as summarizer, but ANTHROPIC_API_KEY is not set.")
    return Extractive()
