"""The version: that of the checkout with its commit, and none without git."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contextlab.version import RELEASE, version

ROOT = Path(__file__).parents[2]


def asked(root: Path, **more: str) -> str:
    code = "from contextlab.version import version; print(version())"
    command = [sys.executable, "-P", "-S", "-c", code]
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "PYTHONPATH": str(root)} | more
    found = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the sources, as from an archive."""
    (tmp_path / "contextlab").mkdir()
    for name in ("contextlab/__init__.py", "contextlab/version.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    command = ["git", "-C", str(root), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_checkout_without_tags_tells_its_commit_and_the_next_one(folder: Path):
    assert asked(folder) == RELEASE
    git(folder, "init", "--quiet")
    assert asked(folder) == RELEASE  # no commit yet
    for _ in range(2):
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "x")
        assert asked(folder) == f"{RELEASE}+g{git(folder, 'rev-parse', '--short=8', 'HEAD')}"
    assert asked(folder, PATH="/nowhere") == RELEASE  # no git


def test_an_image_is_told_its_commit(folder: Path):
    assert asked(folder, CONTEXTLAB_COMMIT="90def145aa15bb") == f"{RELEASE}+g90def145"


def test_the_description_of_the_api_has_it(client):
    assert client.get("/api/v1/openapi.json").json()["info"]["version"] == version()
