"""Outlines: what they show of each language, and that no text brings them down."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import FileRef
from compaction.outlines.grammar import _tools
from compaction.outlines.grammars import ENDINGS, QUERIES, language_of
from compaction.outlines.outline import FEW, MOST_ROWS, WIDTH, outline
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import FileText
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.outline import Outline
from tests.build import Talk, rough

SAMPLES = {
    file.stem: tuple(file.read_text().split("\n----\n"))
    for file in sorted((Path(__file__).parents[1] / "outlined").glob("*.txt"))
}
"""A source and its outline, by the path of the source."""


@pytest.mark.parametrize("path", SAMPLES)
def test_what_is_shown_of_a_language(path: str) -> None:
    text, wanted = SAMPLES[path]
    assert outline(text, path) == wanted.rstrip("\n")


def test_all_languages_have_a_sample() -> None:
    assert {language_of(path) for path in SAMPLES} == set(QUERIES)


@pytest.mark.parametrize("language", QUERIES)
def test_every_grammar_and_query_fit(language: str) -> None:
    assert _tools(language)


def test_every_ending_has_a_grammar() -> None:
    assert set(ENDINGS.values()) <= set(QUERIES)
    assert language_of("src\\A.PY") == "python"
    assert language_of("dir.py/Makefile") is None


def test_numbers_that_the_tool_printed_are_the_files() -> None:
    source = SAMPLES["r.py"][0]
    lines = source.split("\n")
    shown = "\n".join(f"{n:>6}→{line}" for n, line in enumerate(lines, 401))
    assert outline(shown, "r.py").splitlines()[0] == "403\t(imports, 3 lines)"
    assert "\n430\t        def inner(x): ..." in outline(shown, "r.py")


def test_imports_are_counted_where_the_first_one_stands() -> None:
    python = "".join(f"import a{n}\nx{n} = {n}\n" for n in range(400))
    assert outline(python, "a.py").splitlines()[:2] == ["1\t(imports, 400 lines)", "2\tx0 = 0"]
    ruby = "A = 1\nrequire 'a'\nB.require_all 'b'\nputs 'c'\nrequire_relative 'd'\n"
    assert outline(ruby, "a.rb") == "1\tA = 1\n2\t(imports, 3 lines)\n4\tputs 'c'"


def test_only_the_head_of_a_long_type_is_shown() -> None:
    fields = "\n".join(f"  field{n}: string;" for n in range(90))
    answer = outline(f"interface I {{\n{fields}\n}}\nconst a = 1;\n", "a.ts").splitlines()
    assert answer[0] == "1\tinterface I {"
    assert answer[-1] == "93\tconst a = 1;"
    assert answer[-2].endswith("field38: string; ...")


def test_without_a_grammar_indentation_decides() -> None:
    text = "".join(f"rule {n}:\n" + "    step\n" * 12 + "    }\n" for n in range(30))
    answer = outline(text, "Makefile").splitlines()
    assert answer == [f"{1 + 14 * n}\trule {n}:" for n in range(30)]
    assert outline("", "a.py") == outline("\n\n", "a.txt") == ""


_RANDOM = random.Random(7)
HOSTILE = {
    "one line": "x = " + "a+" * 500_000,
    "brackets": "(" * 200_000,
    "200 deep": "x = " + "[" * 200 + "]" * 200,
    "binary": bytes(_RANDOM.randbytes(300_000)).decode("latin1"),
    "noise": "".join(_RANDOM.choices("(){}[]\"'`abc\n :=<>#/*", k=300_000)),
    "minified": ";".join(f"function f{n}(a){{return{{b:[a,{n}]}}}}" for n in range(9_000)),
    "generics": "a<\n" * 15_000,
    "quotes": '"' * 400_000,
    "empty lines": "\n" * 400_000,
    "ever deeper": "\n".join(" " * n + "if x:" for n in range(900)),
    "open functions": "def f():\n" * 15_000,
    "nul": "def f():\n  pass\0\n" * 40,
    "surrogate": "def f():\n    return '\ud800'\n" * 10,
}


@pytest.mark.fault("F10")
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.cs", "a.rb", "a.kt"])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_brings_it_down(name: str, path: str) -> None:
    answer = outline(HOSTILE[name], path)
    rows = answer.split("\n")
    assert len(rows) <= MOST_ROWS + 1
    assert max(map(len, rows)) <= WIDTH + 10


@given(st.text(max_size=400), st.sampled_from([*ENDINGS, "txt"]))
@settings(max_examples=150)
def test_any_text_has_an_outline_of_its_own_lines(text: str, ending: str) -> None:
    answer = outline(text, f"a.{ending}")
    assert answer == outline(text, f"a.{ending}")
    assert answer.count("\n") <= max(FEW, text.count("\n"))


BIG = "".join(f"def f{n}(a):\n    return a + {n}\n\n\n" for n in range(1_000))


def _talk(text: str = BIG, steps: int = 3, **fields: object) -> Talk:
    talk = Talk()
    talk.user("go")
    talk.respond()
    use = talk.call("Read", {"file_path": "big.py"}, file=FileRef("big.py", "read"))
    talk.result(use, text, **fields)
    for _ in range(steps):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "ls"}), "a")
    return talk


def _run(talk: Talk, outlined: object = None, **parameters: object) -> tuple[Run, list[FileText]]:
    asked: list[FileText] = []

    def make(file: FileText) -> str | None:
        asked.append(file)
        return outlined(len(asked)) if callable(outlined) else outline(file.text, file.path)

    step = Step("outline", Outline(**parameters))  # type: ignore[arg-type]
    return simulate(talk.session(), Policy("o", steps=(step,)), rough, outline=make), asked


def test_a_big_file_enters_as_its_outline() -> None:
    run, asked = _run(_talk())
    (revision,) = run.revisions
    assert (revision.step, revision.trigger) == (2, "entry")
    stub = revision.edits[0].replacement
    assert stub is not None
    assert stub.text.startswith("[outline of big.py lines 1-4000, ")
    assert "ref b2@" in stub.text
    assert stub.text.splitlines()[2] == "5\tdef f1(a): ..."
    assert (stub.kind, stub.tool_call, stub.replaces) == ("result", "call1", "b2")
    assert [file.path for file in asked] == ["big.py"]


@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        ({"text": BIG[: len(BIG) // 2]}, {}),
        ({}, {"lines": 4_000}),
        ({}, {"exclude": ("Read",)}),
        ({"pinned": True}, {}),
        ({"error": True}, {}),
        ({"file": FileRef("big.py", "edit")}, {}),
    ],
)
def test_what_stands_as_it_is(fields: dict[str, object], parameters: dict[str, object]) -> None:
    assert _run(_talk(**fields), **parameters)[0].revisions == ()  # type: ignore[arg-type]


def test_an_outline_that_is_late_takes_the_place_of_a_young_text() -> None:
    run, asked = _run(_talk(steps=6), lambda times: "1\tdef f0" if times > 2 else None)
    assert [revision.step for revision in run.revisions] == [4]
    assert len(asked) == 3
    never, asked = _run(_talk(steps=6), lambda _: None, late=2)
    assert never.revisions == ()
    assert len(asked) == 3


def test_a_text_that_is_hot_and_was_seen_waits() -> None:
    talk = _talk(steps=0)
    talk.respond()
    talk.say("looking")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "ls"}), "a")
    run, _ = _run(talk, lambda times: "1\tdef f0" if times > 1 else None)
    assert [revision.step for revision in run.revisions] == [4]


def test_an_outline_that_is_no_shorter_is_not_taken() -> None:
    assert _run(_talk(), lambda _: BIG)[0].revisions == ()
