"""What only some need is an extra: everything else works without it, and a setting names it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

WITHOUT = """
import os, sys
from importlib import util
hidden, arguments = sys.argv[1].split(","), sys.argv[2:]
found = util.find_spec
util.find_spec = lambda name, *rest: None if name in hidden else found(name, *rest)
sys.modules |= dict.fromkeys(hidden)
"""
RUN = "from contextlab.cli import main; main(arguments)"
EVERYTHING = """
import importlib, pkgutil
import daphne.server  # before anything has a reactor
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "contextlab.settings"
django.setup()
for package in map(importlib.import_module, ("contextlab", "sessions", "compaction")):
    for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if one.name not in arguments and ".migrations." not in one.name:
            importlib.import_module(one.name)
"""
EXTRAS = {
    "anthropic": ["anthropic"],
    "mcp": ["mcp"],
    "postgres": ["psycopg", "psycopg_pool"],
    "redis": ["celery", "kombu", "redis", "channels_redis"],
    "s3": ["boto3", "botocore", "storages"],
    "sso": ["oauthlib"],
    "traces": ["opentelemetry.sdk", "opentelemetry.exporter"],
}
"""Modules of each."""
LOADED_WITH_THEM = [
    "contextlab.accounts.single_sign_on",
    "contextlab.celery",
    "contextlab.live.channel_layer",
    "contextlab.mcp_server",
]


def without(
    folder: Path, hidden: list[str], program: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A program in a process to which these modules are not installed."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, ",".join(hidden), *arguments],
        cwd=ROOT,
        env=kept | {"CONTEXTLAB_DATA_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
    )


def test_every_extra_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) == set(EXTRAS)


def test_all_but_what_an_extra_is_for_works_without_extras(tmp_path: Path) -> None:
    hidden = [module for modules in EXTRAS.values() for module in modules]
    done = without(tmp_path, hidden, EVERYTHING, *LOADED_WITH_THEM)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("extra", "command", "environment"),
    [
        ("anthropic", "doctor", {"CONTEXTLAB_SUMMARIZER": "anthropic"}),
        ("anthropic", "doctor", {"CONTEXTLAB_TOPIC_JUDGE": "anthropic"}),
        ("mcp", "mcp", {}),
        ("postgres", "doctor", {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none"}),
        ("redis", "doctor", {"REDIS_URL": "redis://127.0.0.1:9"}),
        ("s3", "doctor", {"CONTEXTLAB_BLOBS": "s3://bucket/prefix"}),
        (
            "sso",
            "doctor",
            {
                "CONTEXTLAB_OIDC_URL": "https://id.example.org",
                "CONTEXTLAB_OIDC_CLIENT_ID": "lab",
                "CONTEXTLAB_OIDC_CLIENT_SECRET": "secret",
            },
        ),
        ("traces", "doctor", {"CONTEXTLAB_TRACES": "1"}),
    ],
)
def test_a_missing_extra_is_one_sentence(
    tmp_path: Path, extra: str, command: str, environment: dict[str, str]
) -> None:
    done = without(tmp_path, EXTRAS[extra], RUN, command, **environment)
    assert done.returncode in (1, 2)
    assert re.fullmatch(rf".+ `?pip install 'contextlab\[{extra}\]'`?\.\n", done.stderr)
