"""The fact ledger: unsupported claims, scores and kinds; nothing is made up or forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.session import Session
from compaction.facts.facts import texts_of
from compaction.facts.paths import normal
from compaction.facts.vocabulary import FactKind, Vocabulary, is_name, kind_of
from compaction.losses.ledger import LISTED, CompactedContext, Fact, Ledger, ledger_of
from compaction.proposals.plan import Span
from compaction.summaries.extract import extractive
from compaction.summaries.model.supported import claims
from tests.build import Talk, coding
from tests.compaction.losses.ledgers import of, states, worked
from tests.compaction.talks import talks
from tests.planted import Case, inventions, losses


@pytest.mark.parametrize(
    ("summary", "unsupported"),
    [
        ("src/rows.py and table.py", set()),
        ("repo/src/other.py", {"repo/src/other.py"}),
        ("src/repo/rows.py", set()),  # made of known folders: best effort
        ("port 5432 of 4096", {"5432"}),
        ("ValueError, TypeError", {"TypeError"}),
        ("https://docs.example/limits/other", {"https://docs.example/limits/other"}),
        ("IMPORTANT: Pre-Existing input/output, and/or High-Level", set()),
        ("<files_and_code> ref m12.0@0a1b2c3d [EMAIL_1] cut_of… src/nothing_h...", set()),
        ("read the full transcript at: /home/me/.claude/projects/x_1/y_2.jsonl", set()),
        ("file_path is an argument, Bash_2 is not", {"Bash_2"}),
    ],
)
def test_unsupported(summary: str, unsupported: set[str]) -> None:
    found = states(of(worked(), summary))
    assert {fact for fact, state in found.items() if state == "unsupported"} == unsupported


def test_a_name_of_short_parts_is_known_by_all_of_it() -> None:
    talk = Talk()
    talk.user("see omp.ps1")
    assert states(of(talk, "nothing")) == {"omp.ps1": "lost"}
    assert states(of(talk, "omp.ps1, abc.ps2")) == {"omp.ps1": "kept", "abc.ps2": "unsupported"}


def test_escapes_in_a_source_are_no_letters() -> None:
    talk = Talk()
    talk.user('{"log": "one\\nload_rows\\tnext"}')
    assert of(talk, "load_rows").unsupported == 0


def test_the_score() -> None:
    assert of(Talk(), "").score is None
    whole = worked()
    assert of(whole, "").score == 0
    assert of(whole, "\n".join(text for b in whole.blocks for text in texts_of(b))).score == 1000
    one = Talk()
    one.user("set MAX_ROWS to 4096")
    assert of(one, "MAX_ROWS").score == 500
    assert of(one, "MAX_ROWS and MIN_ROWS").score == 0, "an invention costs more than it weighs"
    assert ledger_of(one.blocks, "MAX_ROWS", CompactedContext(refs=["b0"])).score == 750


def test_more_than_is_listed_is_counted() -> None:
    talk = Talk()
    talk.user(" ".join(f"name_{number}" for number in range(LISTED + 50)))
    ledger = of(talk, "name_7")
    assert (len(ledger.facts), ledger.kept, ledger.lost) == (LISTED, 1, LISTED + 49)


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        ("src/app.py", "path"), ("a/b/c", "path"), ("x/y_z", "path"),
        ("input/output", "identifier"), ("https://a.example/b", "url"),
        ("12345", "number"), ("load_rows", "identifier"),
    ],
)  # fmt: skip
def test_kinds(fact: str, kind: FactKind) -> None:
    assert kind_of(fact) == kind


def test_a_port_is_no_line() -> None:
    assert normal("https://a.example:8080") == "https://a.example:8080"
    assert normal("localhost:8080") == "localhost:8080"
    assert normal("./Src/App.py:12:3") == "src/app.py"


def test_words_of_prose_are_no_names() -> None:
    assert not any(map(is_name, ["IMPORTANT", "Pre-Existing", "A/B-Test", "End-to-End"]))
    assert all(map(is_name, ["loadRows", "load_rows", "utf8", "Store.loadRows", "x-v2"]))


def unsupported(ledger: Ledger) -> list[Fact]:
    return [fact for fact in ledger.facts if fact.state == "unsupported"]


@given(talks(), st.integers(0, 40), st.sampled_from(["nine", "window"]))
def test_the_extractive_summary_claims_nothing_that_is_not_there(
    session: Session, cut: int, form: str
) -> None:
    span = session.blocks[: len(session.blocks) - cut]
    text = extractive(Span(form, span, span, None, 3_000))  # type: ignore[arg-type]
    assert unsupported(ledger_of(span, text, CompactedContext(session.blocks[len(span) :]))) == []


@given(talks(), st.integers(0, 40), st.integers(0, 10**6))
def test_ledgers_hold(session: Session, cut: int, seed: int) -> None:
    """Every fact once; kept facts are in the context; nothing hangs on chance; inventions show."""
    place = len(session.blocks) - cut
    span, rest = session.blocks[:place], session.blocks[place:]
    case = Case("dice", span, extractive(Span("nine", span, span, None, 3_000)), rest)
    ledger = case.ledger()
    assert ledger == case.ledger()
    assert len({fact.key for fact in ledger.facts}) == len(ledger.facts)
    assert ledger.kept + ledger.retrievable + ledger.lost + ledger.unsupported >= len(ledger.facts)
    here = Vocabulary()
    for text in [case.summary, *(text for block in rest for text in texts_of(block))]:
        here.add(text)
    for fact in ledger.facts:
        if fact.state == "kept" and fact.kind in ("url", "number"):
            assert here.names(fact.fact, fact.kind)
    planted, made = inventions(case, seed)
    assert {fact.fact for fact in unsupported(planted.ledger())} == set(made)


@given(talks())
def test_a_summary_that_is_the_span_loses_nothing(session: Session) -> None:
    text = "\n".join(text for block in session.blocks for text in texts_of(block))
    ledger = ledger_of(session.blocks, text, CompactedContext())
    assert (ledger.lost, ledger.retrievable, ledger.unsupported) == (0, 0, 0)


@settings(max_examples=30)
@given(talks(), st.integers(0, 40))
def test_what_is_taken_out_is_lost(session: Session, cut: int) -> None:
    span = session.blocks[: len(session.blocks) - cut]
    text = "\n".join(text for block in span for text in texts_of(block))
    case = Case("dice", span, text, session.blocks[len(span) :])
    for planted, fact in losses(case, 3):
        assert states(planted.ledger())[fact.fact] == "lost", (fact, planted.summary[-3000:])


@pytest.mark.parametrize(
    "text",
    ["a/" * 200_000, "A_" * 200_000, "1," * 200_000, "error " * 60_000, "\\n" * 200_000,
     "x_1\n" * 100_000, "…a_b" * 100_000, "- [ ] t\n" * 50_000, "1. Abc:\n" * 50_000],
)  # fmt: skip
def test_hostile_texts_end(text: str) -> None:
    talk = Talk()
    talk.user(text)
    talk.respond()
    talk.result(talk.call("Bash", {"command": text}), text, error=True)
    ledger = of(talk, text, Talk().user(text))
    assert (ledger.lost, ledger.unsupported) == (0, 0)


def test_a_long_session_is_judged_whole() -> None:
    session = coding(1_000, 60)
    text = extractive(Span("nine", session.blocks, session.blocks, None, 3_000))
    ledger = ledger_of(session.blocks, text, CompactedContext())
    assert ledger.unsupported == 0
    assert ledger.kept >= 37, "all modules, in spite of how often they occur"


def test_claims_are_read_once_in_order() -> None:
    assert list(claims("a_first then 12345 and src/second.py")) == [
        "a_first", "12345", "src/second.py",
    ]  # fmt: skip
