"""Figures as pages write them; `frontend/tests/format.test.ts` holds the browser to the same."""

from __future__ import annotations

import pytest

from sessions.templatetags.figures import UNKNOWN, finely, percent
from sessions.templatetags.marks import marked, unmarked


@pytest.mark.parametrize(
    ("share", "coarse", "fine"),
    [
        (0, "0 %", "0 %"), (0.0004, "< 1 %", "< 0.1 %"), (0.004, "< 1 %", "0.4 %"),
        (0.5, "50 %", "50.0 %"), (0.994, "99 %", "99.4 %"), (0.996, "> 99 %", "99.6 %"),
        (0.99999, "> 99 %", "> 99.9 %"), (1, "100 %", "100 %"), (1.0004, "> 100 %", "> 100 %"),
        (1.2, "120 %", "120.0 %"), (None, UNKNOWN, "–"),
    ],
)  # fmt: skip
def test_all_of_it_alone_is_100_percent_and_none_of_it_alone_0(share, coarse, fine):
    assert (percent(share), finely(share)) == (coarse, fine)


@pytest.mark.parametrize(
    ("text", "html", "plain"),
    [
        ("## Goal ##\nDone", "<strong>Goal</strong>\nDone", "Goal\nDone"),
        ("a **bold `x`** b", "a **bold <code>x</code>** b", "a bold x b"),
        ("**bold** and __too__", "<strong>bold</strong> and <strong>too</strong>", "bold and too"),
        ("- one\n  * two", "• one\n  • two", "• one\n  • two"),
        ("`a ** b` ** c", "<code>a ** b</code> ** c", "a ** b ** c"),
        ("…end.** `x` of `bui…", "…end. <code>x</code> of bui…", "…end.** x of `bui…"),
        ("```py\nx = 1\n```\n", "x = 1\n", "x = 1\n"),
        ("2 * 3 * 4, snake__case, #5", "2 * 3 * 4, snake__case, #5", "2 * 3 * 4, snake__case, #5"),
        ("**<img src=x>** `<b>`", "<strong>&lt;img src=x&gt;</strong> <code>&lt;b&gt;</code>",
         "<img src=x> <b>"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))", "[x](javascript:alert(1))"),
    ],
)  # fmt: skip
def test_marks_of_markdown_are_shown_and_nothing_else_gets_through(text, html, plain):
    assert (marked(text), unmarked(text)) == (html, plain)
