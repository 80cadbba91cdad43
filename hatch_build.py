"""Build the pages into the wheel, so that installing it needs no Node."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Pages(BuildHookInterface):
    """Runs npm, unless an sdist brought the built pages along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises RuntimeError when pages must be built and there is no npm."""
        root = Path(self.root)
        built = (root / "contextlab/static/contextlab/manifest.json").exists()
        if version == "editable" or (built and not (root / ".git").exists()):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("npm is needed to build the pages: install Node 20.19 or newer")
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=root / "frontend", check=True)
        subprocess.run([npm, "run", "build"], cwd=root / "frontend", check=True)
