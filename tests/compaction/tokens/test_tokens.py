"""Counting: exact offline, scaled, estimated."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import hatch_build
from compaction import tokens
from compaction.context.session import Call, Session, Usage
from compaction.token_ratio import calibrate, counting_for
from compaction.tokens import (
    count,
    counted,
    encoding_for,
    estimate,
    scaled,
)
from tests.build import Talk


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"),
    [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("<|endoftext|>", 7, 7),
        ("def f(x: int) -> list[str]:\n    return []\n", 13, 13),
        ("上下文工程", 3, 5),
        ("\ud800 lone", 2, 2),
    ],
)
def test_counts(text: str, o200k: int, cl100k: int) -> None:
    assert (count(text), count(text, "cl100k_base")) == (o200k, cl100k)


def test_vocabularies_come_from_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    tokens._encoding.cache_clear()
    assert count("hello world\n" * 100) == 300
    names = [path.name for path in (tmp_path / "cache").iterdir()]
    assert names == ["fb374d419588a4632f3f557e76b4b70aebbca790"]
    tokens._encoding.cache_clear()


@pytest.mark.fault("F5")
def test_a_million_blanks_are_counted_in_pieces() -> None:
    blanks = counted(" " * 1_000_000)
    assert not blanks.estimated
    assert 7_800 <= blanks.tokens <= 7_900
    lines = "some line of a log, number 12345\n" * 10_000
    whole = len(lines) // 33 * count("some line of a log, number 12345\n")
    assert abs(counted(lines).tokens - whole) <= 4


@pytest.mark.fault("F5")
def test_a_panic_is_an_estimate_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    class Panics:
        def encode_ordinary(self, _: str) -> list[int]:
            raise PanicException

    class Stops:
        def encode_ordinary(self, _: str) -> list[int]:
            raise KeyboardInterrupt

    monkeypatch.setattr(tokens, "_encoding", lambda _: Panics())
    text = "x" * (tokens.SHORT + 1)  # a shorter one would be remembered
    assert counted(text) == tokens.Counted(115, estimated=True)
    monkeypatch.setattr(tokens, "_encoding", lambda _: Stops())
    with pytest.raises(KeyboardInterrupt):
        count(text)


def test_what_is_remembered_is_counted_under_its_own_encoding() -> None:
    text = "Ein Satz, der kurz ist."
    apart = [count(text, name) for name in ("o200k_base", "cl100k_base")]
    assert [count(text, name) for name in ("o200k_base", "cl100k_base")] == apart
    assert apart[0] < apart[1]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("gpt-5.6-sol", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("claude-opus-4-6", None),
        ("", None),
    ],
)
def test_vocabulary_of_a_model(model: str, encoding: str | None) -> None:
    assert encoding_for(model) == encoding


def test_scaling_rounds_half_up_in_whole_numbers() -> None:
    assert [scaled(n, 1285) for n in (0, 1, 2, 3, 100)] == [0, 1, 3, 4, 129]
    assert scaled(1, 500) == 1


def test_published_estimate() -> None:
    assert estimate([]) == 0
    assert estimate(["x" * 400]) == int(1.1 * 105) == 115
    assert estimate(["x" * 400], chars_per_token=3) == int(1.1 * 138)
    assert estimate(["", "abc", "abcd"]) == int(1.1 * 16) == 17
    assert estimate(["上下文工程" * 30]) == int(1.1 * 105)
    # 500 messages of 125K tokens, the published table's row: 955 code points each.
    assert estimate(["y" * 888] * 500) == int(1.1 * 500 * 227) == 124_850


def _reported(ratio: float, model: str = "claude-opus-4-6") -> tuple[Session, dict[str, int]]:
    talk = Talk()
    talk.user("go")
    for number in range(12):
        talk.respond()
        if number == 6:
            talk.think("hm " * 3_000)
        talk.result(talk.call("Read", {"path": "a"}), "word " * (400 + number))
    counts = {block.id: count(block.text) for block in talk.blocks}
    prompt, calls = 30_000.0, []
    for step in range(1, talk.step + 2):
        prompt += ratio * sum(counts[b.id] for b in talk.blocks if b.born == step)
        calls.append(Call(step, model, usage=Usage(cache_read=round(prompt) - 3, uncached=3)))
    return Session(tuple(talk.blocks), tuple(calls), model, 200_000), counts


def test_a_ratio_is_learned_from_usage() -> None:
    session, counts = _reported(1.3)
    learned = calibrate(session, counts)
    assert learned is not None
    assert abs(learned - 1300) <= 3
    assert counting_for(session, counts) == tokens.Counting("calibrated", learned)


def test_without_usable_usage_the_table_is_used_and_exact_models_are_never_scaled() -> None:
    session, counts = _reported(9.0)
    assert calibrate(session, counts) is None
    assert counting_for(session, counts) == tokens.Counting("estimated", 1285)
    session, counts = _reported(1.3, "gpt-5")
    assert counting_for(session, counts) == tokens.Counting("exact", 1000, "o200k_base")
    assert tokens.default_counting("unheard-of") == tokens.Counting("estimated", 1000)
    assert tokens.default_counting("claude-sonnet-4-20250514").permille == 1121


def test_the_wheel_brings_the_vocabularies_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = hatch_build.vocabularies()
    for source, target in packed.items():
        assert Path(target).parent == Path("compaction") / tokens.VOCABULARIES.name
        copied = tmp_path / Path(target).name
        copied.write_bytes(Path(source).read_bytes())
    monkeypatch.setattr(tokens, "VOCABULARIES", tmp_path)
    monkeypatch.setattr(tokens, "find_spec", lambda _: None)
    tokens.seed(tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == len(packed) == 2
    monkeypatch.setattr(tokens, "VOCABULARIES", tmp_path / "none")
    with pytest.raises(tokens.NoVocabulary, match="o200k_base"):
        tokens.seed(tmp_path / "other")
