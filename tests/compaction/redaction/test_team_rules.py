"""A team's own masking rules: what they find, and what they cost."""

from __future__ import annotations

import pytest

from compaction.redaction.redact import Masker, redact
from compaction.redaction.team_rules import (
    MOST_MATCHES,
    WINDOW,
    BadRule,
    TeamRule,
    check,
    masked_by,
)
from compaction.redaction.values import masked_block

NAMES = TeamRule("CUSTOMER", "words", "Mara Olsen\nMara\nÅse", "[CUSTOMER]")
ORDER = TeamRule("ORDER", "pattern", r"ord-\d+$|^no\. \d+", "[ORDER]")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mara olsen called", "[CUSTOMER] called"),
        ("Marathon, xMara, Mara2", "Marathon, xMara, Mara2"),
        ("ÅSE and Åsegard", "[CUSTOMER] and Åsegard"),
        ("a Mara\nMara-b", "a [CUSTOMER]\n[CUSTOMER]-b"),
    ],
)
def test_words_are_found_whole_in_upper_and_lower_case(text: str, wanted: str):
    assert masked_by((NAMES,), text, {}) == wanted


def test_a_pattern_sees_one_line_at_a_time():
    text = "see ord-12\nno. 7 is ord-1 here\nord-9"
    assert masked_by((ORDER,), text, {}) == "see [ORDER]\n[ORDER] is ord-1 here\n[ORDER]"
    over = TeamRule("LINES", "pattern", r"a\nb", "[X]")
    assert masked_by((over,), "a\nb", {}) == "a\nb"


def test_a_match_on_the_border_of_two_windows_is_masked_whole():
    rule = TeamRule("TOKEN", "pattern", "x{40}", "[T]")
    for shift in range(WINDOW // 2 - 45, WINDOW // 2 + 5):
        text = "-" * (WINDOW // 2 + shift) + "x" * 40 + "é" * WINDOW
        counts: dict[str, int] = {}
        masked = masked_by((rule,), text, counts)
        assert "x" not in masked.replace("[T]", ""), shift
        assert masked.endswith("é" * 100)


def test_a_window_with_too_many_matches_is_masked_as_a_whole():
    rule = TeamRule("LETTER", "pattern", "(?:a.*b)|a", "[L]")
    counts: dict[str, int] = {}
    masked = masked_by((rule,), "a" * 10 * WINDOW, counts)
    assert "a" not in masked
    assert counts["LETTER"] < MOST_MATCHES, "not one for each letter: that would be quadratic"


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ("name", TeamRule("customer", "words", "x", "[C]")),
        ("text", TeamRule("CUSTOMER", "words", " \n", "[C]")),
        ("text", TeamRule("CUSTOMER", "pattern", "(a", "[C]")),
        ("text", TeamRule("CUSTOMER", "pattern", "(?=a)b", "[C]")),
        ("text", TeamRule("CUSTOMER", "pattern", "a*", "[C]")),
        ("text", TeamRule("CUSTOMER", "pattern", "(?:[a-z]{90}[0-9]{90}){9}", "[C]")),
        ("replacement", TeamRule("CUSTOMER", "words", "x", "")),
        ("replacement", TeamRule("CUSTOMER", "words", "x", "a\nb")),
    ],
)
def test_rules_that_cannot_be_used_say_which_field_is_wrong(field: str, rule: TeamRule):
    with pytest.raises(BadRule) as refused:
        check(rule)
    assert refused.value.field == field
    assert str(refused.value).endswith(".")


def test_what_is_masked_stays_as_it_is_though_the_rule_matches_its_replacement():
    rule = TeamRule("CUSTOMER", "words", "customer", "[CUSTOMER]")
    masked = masked_by((rule,), "a customer: [customer]", {})
    assert masked == "a [CUSTOMER]: [[CUSTOMER]]"
    assert masked_by((rule,), masked, {}) == masked


def test_good_rules_pass():
    check(NAMES)
    check(ORDER)


def test_rules_come_before_what_is_masked_anyway_and_are_counted_by_name():
    found = redact("Mara wrote to mara.olsen@example.com", (NAMES,))
    assert found.text == "[CUSTOMER] wrote to [CUSTOMER][EMAIL_1]"
    assert dict(found.masked) == {"CUSTOMER": 2, "EMAIL": 1}
    plain = redact("a@example.com and Mara", (NAMES,))
    assert (plain.text, dict(plain.masked)) == (
        "[EMAIL_1] and [CUSTOMER]",
        {"CUSTOMER": 1, "EMAIL": 1},
    )


def test_texts_that_only_a_rule_masks_are_found_by_the_search_of_many():
    masker = Masker((NAMES,))
    assert masker.search(["nothing", "Mara"]) == {"Mara"}
    assert masker.mask("Mara") == "[CUSTOMER]"


def test_masks_with_a_key_follow_from_the_secret_alone():
    one, other = Masker(key=b"k"), Masker(key=b"k")
    one.mask("b@example.com")
    masked = one.mask("to a@example.com")
    assert other.mask("to a@example.com") == masked
    assert other.mask(masked) == masked, "masked once more, it stays"
    assert Masker(key=b"l").mask("to a@example.com") != masked


def test_of_blocks_the_form_stays():
    rules = (TeamRule("WORDS", "words", "text\ntype\nRead\ncustomer\ntoolu_1\ncontent", "[W]"),)
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"customer": "a Read"}}
    assert masked_block(Masker(rules), use) == {
        "type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"[W]": "a [W]"},
    }  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}
    assert masked_block(Masker(rules), result) == {**result, "content": "[W]"}
    schema = {"type": "object", "properties": {"customer": {"description": "the customer"}}}
    tools = {"type": "tools", "tools": [{"name": "Read", "input_schema": schema}]}
    (tool,) = masked_block(Masker(rules), tools)["tools"]
    assert tool["name"] == "Read"
    assert tool["input_schema"]["properties"] == {"customer": {"description": "the [W]"}}


def test_a_signature_goes_with_the_text_that_it_signed():
    thinking = {"type": "thinking", "thinking": "Ask Mara.", "signature": "abc"}
    assert masked_block(Masker((NAMES,)), thinking) == {
        "type": "thinking",
        "thinking": "Ask [CUSTOMER].",
    }
    assert masked_block(Masker(), thinking) == thinking
