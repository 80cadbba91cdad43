"""Texts that are searched at once get the masks that they get one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.redaction import together
from compaction.redaction.redact import Masker
from compaction.redaction.together import Masks, masked_in_order
from tests.compaction.secret_samples import samples

SECRETS = [text for seed in (3, 7) for _, _, text, _ in samples(seed)]
PIECES = [
    "4111 1111 1111 1111", "ann@acme.io", "password", "=", ": ", "hunter2-x", "curl -u a:b23x",
    "\n", " ", "10.1.2.3", "[EMAIL_3]", "fe80:0:0:1::", "+41 44 668 18 00", "aZ9" * 20, "\\n", '"',
    "8fK2mQ9xLw3zR7vTa0Zb1Yc2Xd3W", "-----BEGIN PRIVATE KEY-----\n", "-u x:secret1", "ünï", "_",
    "\ud800", "1",
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(SECRETS), st.lists(st.sampled_from(PIECES)).map("".join))


def mask_list(masker: Masks, texts: list[str]) -> list[str]:
    return [masker.mask(text) for text in texts]


@settings(max_examples=200)
@given(st.lists(st.lists(TEXTS, max_size=4), max_size=8), st.sampled_from([1, 100, 10_000]))
def test_many_at_once_are_masked_as_one_by_one(values: list[list[str]], at_once: int) -> None:
    alone, joined = Masker(), Masker()
    expected = [mask_list(alone, value) for value in values]
    before, together.AT_ONCE = together.AT_ONCE, at_once
    try:
        assert list(masked_in_order(joined, values, mask_list)) == expected
    finally:
        together.AT_ONCE = before
    assert joined.masked == alone.masked


def test_samples_are_masked_as_one_by_one() -> None:
    alone, joined = Masker(), Masker()
    expected = [alone.mask(text) for text in SECRETS]
    assert list(masked_in_order(joined, SECRETS, lambda m, t: m.mask(t))) == expected
    assert joined.masked == alone.masked
    assert len(alone.masked) > 8


def test_a_text_without_a_secret_is_not_searched_again() -> None:
    seen: list[str] = []

    class Counting(Masker):
        def mask(self, text: str) -> str:
            seen.append(text)
            return super().mask(text)

    texts = ["all is well", "ann@acme.io", "deadbeef" * 5]
    assert list(masked_in_order(Counting(), texts, lambda masker, text: masker.mask(text))) == [
        "all is well", "[EMAIL_1]", "deadbeef" * 5,
    ]  # fmt: skip
    assert seen == ["ann@acme.io"]
