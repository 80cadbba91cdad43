"""Overrides of policy settings for one session, from its request or from the environment."""

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
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Session
from sessions.models.policies.policy_documents import base_name, preset_document

log = logging.getLogger(__name__)

CASES = {"qa", "debugging", "long-task"}
"""Shannon's use cases, by Shannon's names; each is a preset."""

LONGEST = 64 * 1024
"""Maximum size of requested overrides, in code points of JSON."""


@dataclass(frozen=True, slots=True)
class RequestedOverrides:
    """Overrides in a request; None or empty if not given."""

    use_case_preset: str | None = None
    history_window_size: int | None = None
    token_budget_per_agent: int | None = None
    token_budget_per_task: int | None = None
    policy_overrides: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self != RequestedOverrides()

    @property
    def preset(self) -> str | None:
        """The name of the requested preset."""
        if self.use_case_preset in CASES:
            return f"sliding-window-{self.use_case_preset}"
        return self.use_case_preset

    @property
    def values(self) -> dict[str, Any]:
        """The requested settings, by key."""
        found = dict(self.policy_overrides)
        asked = {key: getattr(self, name) for name, key in NUMBERS.items()}
        return found | {key: value for key, value in asked.items() if value is not None}


NUMBERS = {
    "history_window_size": "window.messages",
    "token_budget_per_agent": "window.budget",
    "token_budget_per_task": "task_budget",
}
"""Fields of a request that are settings, by Shannon's names."""

FIELDS = tuple(RequestedOverrides.__dataclass_fields__)


def asked_for(body: Mapping[str, Any]) -> RequestedOverrides:
    """Parse overrides from the body of a PUT. Raises Unacceptable."""
    preset = body.get("use_case_preset")
    if preset is not None and not (isinstance(preset, str) and (preset in CASES | set(PRESETS))):
        names = ", ".join([*sorted(CASES), *sorted(PRESETS)])
        raise Unacceptable("/use_case_preset", f"must be one of {names}")
    numbers = {name: body.get(name) for name in NUMBERS}
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise Unacceptable(f"/{name}", "must be a whole number")
    overrides = body.get("policy_overrides")
    if overrides is not None and not isinstance(overrides, dict):
        raise Unacceptable(
            "/policy_overrides", "must be an object that maps setting paths to values"
        )
    overrides = overrides or {}
    if len(overrides) > MOST_KEYS or len(json.dumps(overrides, default=str)) > LONGEST:
        raise Unacceptable("/policy_overrides", f"has more than {MOST_KEYS} values or 64 kB")
    return RequestedOverrides(preset, **numbers, policy_overrides=overrides)


def settle(session: Session, asked: RequestedOverrides) -> None:
    """Set the overrides of a session; the caller saves its row.

    Clears them if neither the request nor the environment overrides anything. Raises Unacceptable
    with the invalid field.
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


def changed(session: Session, asked: RequestedOverrides) -> str | None:
    """The first field of a request that conflicts with the session's overrides; None without
    conflict.

    Fields that the request omits never conflict.
    """
    nothing, wanted = asdict(RequestedOverrides()), asdict(asked)
    held = (session.overrides or {}).get("asked", nothing)
    return next((one for one in FIELDS if wanted[one] not in (nothing[one], held.get(one))), None)


def _pointer(asked: RequestedOverrides, key: str) -> str:
    if key in asked.policy_overrides:
        return "/policy_overrides/" + key.replace("~", "~0").replace("/", "~1")
    return next((f"/{name}" for name, one in NUMBERS.items() if one == key), "/policy")


def environment_values() -> Mapping[str, Any]:
    """Overrides from the environment, for every session; invalid ones are ignored and logged."""
    found = tuple((name, os.environ[name]) for name in sorted(os.environ) if PREFIX in name)
    return _read(found)


@lru_cache(maxsize=8)
def _read(variables: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
    values, wrong = from_environment(dict(variables))
    for name, problem in wrong.items():
        log.warning("%s is ignored: %s", name, problem)
    return values
