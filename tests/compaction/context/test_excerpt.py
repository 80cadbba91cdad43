"""Parts of long texts: every way to ask, every way to ask wrongly, and never more than fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.excerpt import ANSWER, BadSelection, Selection, excerpt, selection_of
from compaction.tools.read_tool import asked, definition

TEN = "".join(f"line {n}\n" for n in range(1, 11))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Selection()),
        ({"lines": "10-40"}, Selection(lines=(10, 40))),
        ({"lines": "10"}, Selection(lines=(10, 10))),
        ({"lines": 10}, Selection(lines=(10, 10))),
        ({"lines": "10-"}, Selection(lines=(10, 2**31 - 1))),
        ({"lines": "-5"}, Selection(lines=(1, 5))),
        ({"lines": [3, 4]}, Selection(lines=(3, 4))),
        ({"grep": "a.c", "context": 2}, Selection(grep="a.c", context=2)),
        ({"head": "7"}, Selection(head=7)),
        ({"tail": 7, "offset": "3"}, Selection(tail=7, offset=3)),
        ({"grep": "", "tail": None, "head": 1}, Selection(head=1)),
    ],
)
def test_arguments_make_a_selection(given: dict[str, Any], expected: Selection) -> None:
    assert selection_of(given) == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"lines": "1-2", "head": 3}, "lines and head"),
        ({"lines": "4-2"}, "ascending"),
        ({"lines": "0-2"}, "at 1 or later"),
        ({"lines": "a-b"}, "10-40"),
        ({"lines": "-"}, "10-40"),
        ({"lines": True}, "10-40"),
        ({"head": 0}, "head"),
        ({"head": "-3"}, "head"),
        ({"tail": 1.5}, "tail"),
        ({"tail": True}, "tail"),
        ({"grep": ["a"]}, "grep"),
        ({"grep": "a", "context": 21}, "context"),
        ({"offset": -1}, "offset"),
        ({"head": "9" * 30}, "head"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadSelection, match=problem):
        selection_of(given)


@pytest.mark.parametrize(
    ("given", "text", "first", "last"),
    [
        ({}, TEN, 1, 10),
        ({"lines": "2-3"}, "line 2\nline 3", 2, 3),
        ({"lines": "9-99"}, "line 9\nline 10", 9, 10),
        ({"head": 1}, "line 1", 1, 1),
        ({"tail": 2}, "line 9\nline 10", 9, 10),
        ({"tail": 50}, TEN.rstrip(), 1, 10),
        ({"grep": "[29]$"}, "2:line 2\n9:line 9", 2, 9),
        ({"grep": "[29]$", "context": 1}, 
         "1-line 1\n2:line 2\n3-line 3\n--\n8-line 8\n9:line 9\n10-line 10", 1, 10),
        ({"grep": "[24]$", "context": 1}, "1-line 1\n2:line 2\n3-line 3\n4:line 4\n5-line 5", 1, 5),
        ({"grep": "(?i)LINE 7"}, "7:line 7", 7, 7),
        ({"grep": "nothing"}, "", 0, 0),
    ],
)  # fmt: skip
def test_what_a_selection_gives(given: dict[str, Any], text: str, first: int, last: int) -> None:
    found = excerpt(TEN, selection_of(given))
    assert (found.text, found.first, found.last, found.total) == (text, first, last, 10)
    assert found.rest is None


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a{5000}", "x" * 1001])
def test_patterns_that_are_none_are_refused_and_named_nowhere(
    pattern: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadSelection):
        excerpt(TEN, Selection(grep=pattern))
    assert pattern not in "".join(capfd.readouterr())


def test_a_pattern_that_ruins_other_engines_is_answered() -> None:
    assert excerpt("a" * 200_000 + "!", Selection(grep="(a+)+$")).text == ""


def test_lines_beyond_the_end_are_refused() -> None:
    with pytest.raises(BadSelection, match="10 lines"):
        excerpt(TEN, Selection(lines=(11, 12)))
    with pytest.raises(BadSelection, match="offset"):
        excerpt(TEN, Selection(offset=100))


def test_long_matching_lines_are_cut() -> None:
    found = excerpt("x" * 9_000, Selection(grep="x"))
    assert found.text.endswith("… [9000 chars]") and len(found.text) < 2_100


WAYS: list[dict[str, Any]] = [
    {}, {"lines": "2-"}, {"head": 5_000}, {"tail": 4_000}, {"grep": "e", "context": 1}
]  # fmt: skip


@given(
    st.lists(st.text("ab\n é", max_size=30), max_size=60),
    st.integers(1, 900),
    st.sampled_from(WAYS),
)
def test_parts_put_together_are_the_whole(
    some: list[str], times: int, given: dict[str, Any]
) -> None:
    text = "\n".join(some) * times + "\nthe end"
    whole, parts, found = "", 0, excerpt(text, selection_of(given))
    while True:
        whole, parts = whole + found.text, parts + 1
        assert len(found.text) <= ANSWER
        if found.rest is None:
            break
        assert found.text[-1] == "\n" or "\n" not in found.text[ANSWER // 2 :]
        found = excerpt(text, selection_of(found.rest))
    lines = text.split("\n")
    if not given:
        assert whole == text and found.last == found.total
    elif "lines" in given:
        assert whole == "\n".join(lines[1:])
    elif "head" in given:
        assert whole == "\n".join(lines[:5_000])
    elif "tail" in given:
        assert whole == "\n".join(lines[-4_000:])
    assert parts >= len(whole) // ANSWER


def test_the_tool_says_what_its_input_may_be() -> None:
    ours, theirs = definition("anthropic"), definition("openai")
    assert theirs["function"]["parameters"] == ours["input_schema"]
    assert set(ours["input_schema"]["properties"]) == {"ref", "lines", "grep", "offset"}
    assert asked({"ref": " m1.0@abcd ", "head": 3}) == ("m1.0@abcd", Selection(head=3))
    assert asked({"ref": 12}) == ("12", Selection())
    for wrong in ({}, {"ref": ""}, {"ref": None}, {"ref": ["m1.0"]}, {"ref": True}):
        with pytest.raises(BadSelection, match="ref is missing"):
            asked(wrong)
