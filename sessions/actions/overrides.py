"""What one session's policy says otherwise: asked for when it was made, or from the environment."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from compaction.policies.policy import InvalidPolicy
from compaction.policies.presets import PRESETS
from compaction.policies.resolve import MOST_KEYS, PREFIX, from_environment, resolve
from sessions.importers.delivered import Unacceptable
from sessions.models import Session
from sessions.models.policy_documents import base_name, preset_document

log = logging.getLogger(__name__)

CASES = {"qa", "debugging", "long-task"}
"""Shannon's cases, by its names; each is a preset of ours."""

LONGEST = 64 * 1024
"""Code points of what is asked for at most, as JSON."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says of its session's policy; None and nothing where it says nothing."""

    use_case_preset: str | None = None
    history_window_size: int | None = None
    token_budget_per_agent: int | None = None
    policy_overrides: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self != Asked()

    @property
    def preset(self) -> str | None:
        """The preset that it names."""
        if self.use_case_preset in CASES:
            return f"sliding-window-{self.use_case_preset}"
        return self.use_case_preset

    @property
    def values(self) -> dict[str, Any]:
        """The single values that it asks for, by key."""
        found = dict(self.policy_overrides)
        if self.history_window_size is not None:
            found["window.messages"] = self.history_window_size
        if self.token_budget_per_agent is not None:
            found["window.budget"] = self.token_budget_per_agent
        return found


FIELDS = tuple(Asked.__dataclass_fields__)


def asked_for(body: Mapping[str, Any]) -> Asked:
    """Read them from the body of a PUT. Raises Unacceptable."""
    preset = body.get("use_case_preset")
    if preset is not None and not (isinstance(preset, str) and (preset in CASES | set(PRESETS))):
        names = ", ".join([*sorted(CASES), *sorted(PRESETS)])
        raise Unacceptable("/use_case_preset", f"must be one of {names}")
    for name in ("history_window_size", "token_budget_per_agent"):
        value = body.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise Unacceptable(f"/{name}", "must be a whole number")
    overrides = body.get("policy_overrides")
    if overrides is not None and not isinstance(overrides, dict):
        raise Unacceptable("/policy_overrides", "must be an object of values by their path")
    overrides = overrides or {}
    if len(overrides) > MOST_KEYS or len(json.dumps(overrides, default=str)) > LONGEST:
        raise Unacceptable("/policy_overrides", f"holds more than {MOST_KEYS} values or 64 kB")
    return Asked(
        preset, body.get("history_window_size"), body.get("token_budget_per_agent"), overrides
    )


def settle(session: Session, asked: Asked) -> None:
    """Fix what a session runs under beyond its policy's version; its row is saved by the caller.

    Nothing is kept where nobody says otherwise. Raises Unacceptable with the field that is wrong.
    """
    version = session.policy_version
    if version is None:
        session.overrides = None
        return
    environment = environment_values()
    if not asked and not environment:
        session.overrides = None
        return
    base = preset_document(base_name(version))
    try:
        named = asked.preset is not None
        found = resolve(version.document, base, environment, asked.values, named=named)
    except InvalidPolicy as error:
        raise Unacceptable(_pointer(asked, error.field), error.problem) from None
    said = asked or "environment" in found.sources.values()
    session.overrides = (
        {"asked": asdict(asked), "document": found.document, "sources": found.sources}
        if said
        else None
    )


def changed(session: Session, asked: Asked) -> str | None:
    """The first field of a request that asks for something else than the session has.

    None where there is no such field; what a request says nothing of stays as it was.
    """
    nothing, wanted = asdict(Asked()), asdict(asked)
    held = (session.overrides or {}).get("asked", nothing)
    return next((one for one in FIELDS if wanted[one] not in (nothing[one], held.get(one))), None)


def _pointer(asked: Asked, key: str) -> str:
    if key in asked.policy_overrides:
        return "/policy_overrides/" + key.replace("~", "~0").replace("/", "~1")
    if key == "window.messages":
        return "/history_window_size"
    return "/token_budget_per_agent" if key == "window.budget" else "/policy"


def environment_values() -> Mapping[str, Any]:
    """Values that the environment sets for every session; a wrong one is left out, and logged."""
    found = tuple((name, os.environ[name]) for name in sorted(os.environ) if PREFIX in name)
    return _read(found)


@lru_cache(maxsize=8)
def _read(variables: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
    values, wrong = from_environment(dict(variables))
    for name, problem in wrong.items():
        log.warning("%s is not used: %s", name, problem)
    return values
