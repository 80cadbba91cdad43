"""Talks, and ledgers of their summaries."""

from __future__ import annotations

from compaction.context.blocks import Block, FileRef
from compaction.losses.ledger import CompactedContext, Ledger, ledger_of
from tests.build import Talk


def states(ledger: Ledger) -> dict[str, str]:
    return {fact.fact: fact.state for fact in ledger.facts}


def of(talk: Talk, summary: str, *standing: Block, **given: object) -> Ledger:
    return ledger_of(talk.blocks, summary, CompactedContext(standing), **given)  # type: ignore[arg-type]


def worked() -> Talk:
    """A person's wish, a file read, one edited, an error that was mended and one that was not."""
    talk = Talk()
    talk.user("Keep MAX_ROWS at 4096, see https://docs.example/limits/rows")
    talk.respond()
    rows, table = "/repo/src/rows.py", "/repo/src/table.py"
    read = talk.call("Read", {"file_path": rows}, file=FileRef(rows, "read"))
    talk.result(read, "def load_rows(): ...  # noise_word_1")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "pytest -q"}), "E  ValueError: no rows", error=True)
    talk.result(talk.call("Bash", {"command": "ruff check"}), "Found 3 errors.", error=True)
    talk.respond()
    edit = talk.call("Edit", {"file_path": table}, file=FileRef(table, "edit"))
    talk.result(edit, "updated")
    talk.result(talk.call("Bash", {"command": "pytest -q"}), "2 passed")
    return talk
