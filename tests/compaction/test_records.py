"""Records found in a package: those that its modules make."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compaction.records import records_in

FILES = {
    "__init__.py": "",
    "a.py": "RECORD: str = 'of a'",
    "b.py": "from made.a import RECORD",
    "c.py": "from made.a import RECORD\nif RECORD == 'RECORD = of a':\n    pass",
    "d.py": "OTHER = 'of d'\nRECORDS = 'of d'",
    "inner/__init__.py": "from made.a import RECORD as given\nRECORD = given.upper()",
    "inner/e.py": "RECORD = (\n    'of e'\n)",
}


def test_a_module_that_imports_a_record_does_not_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        path = tmp_path / "made" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        found = records_in("made", [str(tmp_path / "made")], "RECORD")
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "made"]:
            del sys.modules[name]
    assert found == ["of a", "OF A", "of e"]
