"""The version with its commit, as in 0.1.0+g90def145; the wheel's metadata gets it from here."""

import os
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

RELEASE = "0.1.0"


@cache
def version() -> str:
    """The version of a checkout as it is now, else as it was when the package was built; without
    git then, it has no commit."""
    root = Path(__file__).resolve().parent.parent
    # Images are built without git's folder.
    commit = os.environ.get("CONTEXTLAB_COMMIT", "")
    if not commit and (root / ".git").exists():
        commit = _commit(root)
    if commit:
        return f"{RELEASE}+g{commit[:8]}"
    if (root / "pyproject.toml").exists():
        return RELEASE  # what is installed may be older than this folder
    try:
        return metadata.version("contextlab")
    except metadata.PackageNotFoundError:
        return RELEASE


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "rev-parse", "--short=8", "HEAD"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
