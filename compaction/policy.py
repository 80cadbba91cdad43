"""Policies as data: which strategies run, in which order, with which numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One strategy of a policy with its parameters, an instance of that strategy's dataclass."""

    strategy: str
    parameters: Any


@dataclass(frozen=True, slots=True)
class Policy:
    """A named list of steps. `reserve` are the tokens of the window kept free for the output."""

    name: str
    version: int = 1
    steps: tuple[Step, ...] = ()
    reserve: int = 0
