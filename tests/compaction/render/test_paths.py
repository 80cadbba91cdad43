"""Paths in place of references: only of replacements, only their own, and nothing else changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import tokens
from compaction.context.blocks import Block, Ending
from compaction.context.stubs import input_stub, reference, result_stub, stand_in
from compaction.context.wire import block_of
from compaction.proposals.shards import parts_of_shard, written
from compaction.render.paths import (
    block_with_paths,
    ending_with_paths,
    references,
    references_of,
)

TEXT = "one\ntwo\nthree " * 40
ORIGINAL = Block(
    "m3.0", 5, 3, 2, 1, "user", "tool_result", "result", 90, len(TEXT), "ab12cd34" * 8, TEXT,
    tool_call="t1", tool="Bash",
)  # fmt: skip
REF = reference(ORIGINAL)
PATHS = {REF: f".off/s/{REF}.txt", "m4.0@ab12cd34": ".off/s/m4.0@ab12cd34.txt"}


def stub(text: str, strategy: str = "offload") -> Block:
    return stand_in(ORIGINAL, text, 20, strategy)


def test_a_stub_names_the_path():
    before = stub(result_stub(ORIGINAL, None))
    after = block_with_paths(before, PATHS)
    assert after.text == before.text.replace(REF, PATHS[REF])
    assert after.chars == len(after.text)
    more = tokens.count(PATHS[REF]) - tokens.count(REF)
    assert after.tokens == before.tokens + more
    same = replace(after, text=before.text, chars=before.chars, tokens=before.tokens)
    assert same == before
    assert block_with_paths(before, {}) is before
    assert references_of(after) == [], "a path is none"


def test_the_input_of_a_call_remains_an_object():
    use = replace(ORIGINAL, type="tool_use", text=json.dumps({"content": TEXT, "path": "a.py"}))
    after = block_with_paths(stand_in(use, input_stub(use), 20, "offload"), PATHS)
    given = block_of(after)["input"]
    assert given["path"] == "a.py" and given["offloaded"].endswith(f"| ref {PATHS[REF]}]")


def test_content_is_never_changed():
    quoted = f"see ref {REF} here"
    assert block_with_paths(replace(ORIGINAL, text=quoted), PATHS).text == quoted
    excerpt = block_with_paths(stub(f"[externalised: ref {REF}]\nref m4.0@ab12cd34"), PATHS)
    assert excerpt.text == f"[externalised: ref {PATHS[REF]}]\nref m4.0@ab12cd34"


def test_a_result_in_parts_is_still_cut_into_them():
    parts = ["one\n", "two\n", "three\n"]
    block = stub(written(ORIGINAL, "Bash ls", parts, "rest"), "shard")
    shown = parts_of_shard(block_with_paths(block, {REF: f"{'/long' * 50}/{REF}.txt"}))
    assert len(shown) == 3
    assert [part.replace(f"{'/long' * 50}/{REF}.txt", REF) for part in shown] == parts_of_shard(
        block
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"| ref {REF}]", [REF]),
        (f'<file ref="{REF}"/> (ref {REF})', [REF]),
        ('<share ref="share:12"><result ref="share:12:m3.0@ab12cd34">', ["share:12",
         "share:12:m3.0@ab12cd34"]),
        (f"a/{REF} x{REF} {REF}0 share:x:{REF} user@{REF}", []),
        ("m3.0 m3.0@ab12 share: ", []),
    ],
)  # fmt: skip
def test_what_counts_as_a_reference(text: str, found: list[str]):
    assert references(text) == found


def test_a_recited_text():
    ending = Ending(text=f"(ref {REF}) share:12 share:13", tokens=9)
    paths = {**PATHS, "share:12": "/o/share-12.txt"}
    assert ending_with_paths(ending, paths).text == f"(ref {PATHS[REF]}) /o/share-12.txt share:13"


@given(st.text(alphabet=f"{REF} \n[]|/share:12refx", max_size=200))
def test_paths_are_put_in_once(text: str):
    block = stub(text)
    once = block_with_paths(block, PATHS)
    assert block_with_paths(once, PATHS) == once
    assert once.text.replace(PATHS[REF], REF) == text.replace(PATHS[REF], REF)
