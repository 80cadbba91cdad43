"""How agents are pointed at the proxy: by variables, or by their own configuration of one run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ADDRESSES = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}
"""The variables that agents and SDKs read."""
_ALSO = {"openai": "OPENAI_API_BASE"}


class PointedAt(NamedTuple):
    """A command, and what it needs in its environment. Nothing is written to a file, so there is
    nothing to restore."""

    command: list[str]
    environment: dict[str, str]


def pointed_at(addresses: Mapping[str, str], command: list[str]) -> PointedAt:
    """Point a command at the proxy's addresses, by provider."""
    program, *rest = command
    anthropic, openai = addresses["anthropic"], addresses["openai"]
    variables = {ADDRESSES[provider]: address for provider, address in addresses.items()}
    variables |= {name: addresses[provider] for provider, name in _ALSO.items()}
    name = Path(program).name
    if name == "codex":
        return PointedAt([program, *_codex(openai), *rest], variables)
    if name == "opencode":
        return PointedAt(command, variables | _opencode(anthropic, openai))
    return PointedAt(command, variables)


def _codex(openai: str) -> list[str]:
    """Codex takes a provider of its own configuration for one run; its built-in one cannot be
    changed. It needs an API key: a subscription's sign-in is for its own provider."""
    table = {
        "name": "ContextLab",
        "base_url": openai,
        "wire_api": "responses",
        "env_key": "OPENAI_API_KEY",
    }
    listed = ",".join(f"{name}={json.dumps(value)}" for name, value in table.items())
    chosen = ('model_provider="contextlab"', f"model_providers.contextlab={{{listed}}}")
    return [part for setting in chosen for part in ("-c", setting)]


def _opencode(anthropic: str, openai: str) -> dict[str, str]:
    """opencode takes configuration in a variable, above its files."""
    given = json.loads(os.environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
    providers = dict(given.get("provider") or {})
    for name, address in (("anthropic", f"{anthropic}/v1"), ("openai", openai)):
        own = dict(providers.get(name) or {})
        providers[name] = {**own, "options": {**(own.get("options") or {}), "baseURL": address}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({**given, "provider": providers})}
