"""Build the pages into the wheel, so that installing it needs no Node, and copy two vocabularies
into it: the package that has them is 75 MB."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def vocabularies() -> dict[str, str]:
    """Files of bpe-openai (MIT, as OpenAI's vocabularies are), and where the wheel has them."""
    spec = find_spec("bpe_openai")
    assert spec is not None and spec.submodule_search_locations is not None
    data = Path(spec.submodule_search_locations[0]) / "data"
    names = ("o200k_base.tiktoken.gz", "cl100k_base.tiktoken.gz")
    return {str(data / name): f"compaction/vocabularies/{name}" for name in names}


class Pages(BuildHookInterface):
    """Runs npm, unless an sdist brought the built pages along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises RuntimeError when pages must be built and there is no npm."""
        root = Path(self.root)
        if version != "editable":
            build_data["force_include"] |= vocabularies()
        built = (root / "contextlab/static/contextlab/manifest.json").exists()
        if version == "editable" or (built and not (root / ".git").exists()):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("npm is needed to build the pages: install Node 20.19 or newer")
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=root / "frontend", check=True)
        subprocess.run([npm, "run", "build"], cwd=root / "frontend", check=True)
