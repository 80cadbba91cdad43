"""Records found in a package: those that its modules make."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from compaction.records import in_order, records_in

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


class Placed(NamedTuple):
    """A record with a name and an order."""

    name: str
    order: int


def test_records_come_in_order() -> None:
    found = in_order([Placed("b", 2), Placed("a", 3), Placed("c", 1)])
    assert list(found) == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("other", "refusal"),
    [
        (Placed("a", 2), "Placed and Placed have the same name, 'a'. Change one"),
        (Placed("b", 1), "a and b have the same order, 1. Change one"),
    ],
)
def test_two_records_with_one_name_or_order_are_refused(other: Placed, refusal: str) -> None:
    with pytest.raises(ValueError) as refused:
        in_order([Placed("a", 1), other])
    assert str(refused.value) == refusal
