"""Fixtures that tests of this folder share."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.browser.replays import token_of
from tests.conftest import ROOT
from tests.empty_store import with_tables


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A data directory with the demo sessions, made by the first process of the run that asks."""
    run = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        run = run.parent  # of all processes
    folder = run / "demo"
    with (run / "demo.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "loaded").exists():
            folder.mkdir()
            subprocess.run(
                [sys.executable, "-m", "contextlab.cli", "demo"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "CONTEXTLAB_DATA_DIR": str(with_tables(folder)),
                    "DATABASE_URL": "",
                },
                check=True,
                stdout=subprocess.DEVNULL,
            )
            (folder / "loaded").touch()
    return folder


@pytest.fixture
def token(page: Any) -> str:
    page.set_default_timeout(20_000)
    return token_of(page)
