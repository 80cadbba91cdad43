"""The lists of what the wheel needs and carries name the versions of the lock files."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "tools" / "sbom"


def listed(name: str) -> dict[str, str]:
    """Versions by name."""
    return {
        one["name"]: one["version"] for one in json.loads((LISTS / name).read_text())["components"]
    }


def test_python_as_locked() -> None:
    locked = dict(
        re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements.lock").read_text(), re.M)
    )
    found = listed("python.cdx.json")
    assert {name: locked.get(name) for name in found} == found
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in wanted}  # type: ignore[index]
    assert names - set(found) == set()


def test_pages_as_locked() -> None:
    packages = json.loads((ROOT / "frontend" / "package-lock.json").read_text())["packages"]
    locked = {
        f"{path.rpartition('node_modules/')[2]}@{one['version']}"
        for path, one in packages.items()
        if path and not one.get("optional")
    }
    rows = json.loads((LISTS / "pages.cdx.json").read_text())["components"]
    assert locked - {one["bom-ref"].partition("|")[0] for one in rows} == set()


def test_the_wheel_lists_them() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    assert {ROOT / one for one in wheel["sbom-files"]} == set(LISTS.iterdir())
