"""What an edit does to its file, as search-and-replace blocks write it."""

import pytest

from compaction.context.blocks import FileRef
from compaction.seen.changes import Swap, change_of
from tests.build import Talk

ONE = "------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE\n"
AIDER = "<<<<<<< SEARCH\na\nb\n=======\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "text, swaps",
    [
        (ONE, [("old\n", "new\n")]),
        (f"{AIDER}\n{ONE}", [("a\nb\n", ""), ("old\n", "new\n")]),
        (ONE.replace("new", "=======\nSEARCH"), [("old\n", "=======\nSEARCH\n")]),
        (f"<<<<<<< SEARCH\n{ONE}", [("------- SEARCH\nold\n", "new\n")]),
        (ONE.replace("old\n", ""), []),  # nothing to search for
        (ONE.replace("=======\n", ""), []),
        (ONE.replace("+++++++ REPLACE", "++++"), []),
        ("- SEARCH\na\n=======\nb\n+ REPLACE\n", []),
    ],
)
def test_search_and_replace_blocks(text: str, swaps: list[tuple[str, str]]) -> None:
    talk = Talk()
    use = talk.call("replace_in_file", {"diff": text}, file=FileRef("a.py", "edit"))
    change = change_of(use)
    assert [*(change.swaps if change else ())] == [Swap(old, new) for old, new in swaps]
