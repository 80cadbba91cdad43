"""The size of what `pip install contextlab` puts on a disk, without extras."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hatch_build import vocabularies

ROOT = Path(__file__).resolve().parents[2]
OURS = ("contextlab", "sessions", "compaction", "templates")
LIMIT, BLOCK = 250_000_000, 4096
"""Bytes; files take whole blocks of a disk."""


def on_disk(files: Iterable[Path]) -> int:
    """Bytes of these files and their bytecode, taken as twice as large where there is none yet."""
    total = 0
    for file in files:
        if file.parent.name == "__pycache__" or not file.is_file():
            continue
        sizes = [file.stat().st_size]
        if file.suffix == ".py":
            compiled = Path(cache_from_source(str(file)))
            sizes.append(compiled.stat().st_size if compiled.exists() else 2 * sizes[0])
        total += sum(-(-size // BLOCK) * BLOCK for size in sizes)
    return total


def installed(wanted: list[str]) -> dict[str, int]:
    """Bytes by distribution of all that these requirements install."""
    found: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(one), "") for one in wanted]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        package = distribution(requirement.name)
        name = package.metadata["Name"]
        if name not in found:
            assert package.files, f"{name} does not list its files"
            found[name] = on_disk(Path(str(file.locate())) for file in package.files)
        for wished in {"", *requirement.extras}:
            if (name, wished) not in seen:
                seen.add((name, wished))
                waiting += [(Requirement(one), wished) for one in package.requires or ()]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="wheels of other systems have other sizes")
def test_an_installation_without_extras_stays_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = installed(project["dependencies"])
    ours = [file for name in OURS for file in (ROOT / name).rglob("*")]
    found["contextlab"] = on_disk([*ours, *map(Path, vocabularies())])
    largest = sorted(found, key=lambda name: -found[name])[:10]
    table = {name: round(found[name] / 1e6, 1) for name in largest}
    assert sum(found.values()) <= LIMIT, f"{sum(found.values()) / 1e6:.1f} MB; largest: {table}"
