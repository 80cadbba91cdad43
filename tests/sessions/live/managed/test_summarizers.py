"""Summaries by a model, over the real client and a provider on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compaction.proposals.plan import Span
from compaction.summaries.extract import extractive
from compaction.summaries.summary import problems, render
from tests import provider as at
from tests.sessions.live.managed.summarized import MODEL, ask, good, span_of, stored, talk_of


def test_a_streamed_summary_is_taken_without_its_analysis(there: at.Provider, span: Span) -> None:
    there.then(at.Text(f"<analysis>\nfirst <summary> or not\n</analysis>\n{good(span)}\n"))
    made = ask(span)
    assert made.text == stored(span, good(span))
    assert (made.maker, made.model, made.note) == ("anthropic", MODEL, "")
    body = there.bodies[0]
    assert body["stream"] is True and body["temperature"] == 0.2 and body["model"] == MODEL
    # Prices of the package: $0.1 for a million tokens in, $0.5 out.
    assert made.usage["requests"] == 1
    assert made.usage["uncached"] == len(json.dumps(_prompt(body))) // 4
    cost = made.usage["uncached"] * 100 + made.usage["output"] * 500
    assert made.cost_microusd == (cost + 500) // 1000 > 0


def _prompt(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body.get(name) for name in ("tools", "system", "messages")}


def test_the_note_of_a_sliding_window_has_a_form_of_its_own(there: at.Provider) -> None:
    span = span_of(talk_of("x" * 4000), "window", budget=400)
    note = render({"key_decisions": ["parse by hand"]}, "window")
    there.then(at.Text(f"Here it is.\n{note}"))
    assert ask(span).text == note
    assert "Key decisions:" in there.bodies[0]["system"]
    assert "<analysis>" not in there.bodies[0]["system"]


BAD: dict[str, Callable[[Span], at.Reply]] = {
    "empty": lambda span: at.Text(""),
    "prose": lambda span: at.Text("I would rather not."),
    "refusal": lambda span: at.Refusal(),
    "cut off": lambda span: at.Text(good(span), "max_tokens"),
    "a section too few": lambda span: at.Text(good(span).replace("<current_work>", "<work>", 1)),
    "malformed element": lambda span: at.Text(
        good(span).replace("<current_work>\n", '<current_work>\n<command execution="x">\n')
    ),
    "made up reference": lambda span: at.Text(good(span).replace('ref="', 'ref="zz')),
    "over budget": lambda span: at.Text(good(span, "much to do " * 300)),
    "broken stream": lambda span: at.Broken(at.Text(good(span))),
    "error in the stream": lambda span: at.ErrorInStream(at.Text(good(span))),
    "overloaded": lambda span: at.Overloaded(),
    "rate limited": lambda span: at.RateLimited(0),
    "a proxy's page": lambda span: at.Raw(b"<html>no</html>", 502, "text/html"),
    "no stream": lambda span: at.Raw(b'{"a": 1}'),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_second_try_mends_a_bad_answer(there: at.Provider, span: Span, fault: str) -> None:
    there.then(BAD[fault](span), at.Text(good(span)))
    made = ask(span)
    assert (made.text, made.maker, made.note) == (stored(span, good(span)), "anthropic", "")
    assert made.usage["requests"] == 2


@pytest.mark.fault("C10", "F14")
@pytest.mark.parametrize("fault", BAD)
def test_after_two_bad_answers_code_writes_it_and_says_so(
    there: at.Provider, span: Span, fault: str
) -> None:
    there.then(BAD[fault](span), BAD[fault](span))
    made = ask(span)
    assert made.text == extractive(span) and problems(made.text) == []
    assert made.maker == "extractive"
    assert made.note.startswith(f"{MODEL} gave no summary: ") and len(made.note) < 400
    assert len(there.bodies) == 2


def test_the_second_try_says_what_was_wrong(there: at.Provider, span: Span) -> None:
    there.then(BAD["a section too few"](span), at.Text(good(span)))
    ask(span)
    said = there.bodies[1]["messages"][0]["content"]
    assert "section current_work is missing" in said
    assert said.startswith(there.bodies[0]["messages"][0]["content"])


@pytest.mark.fault("F14")
def test_a_summary_longer_than_its_span_is_refused(there: at.Provider) -> None:
    span = span_of(talk_of("short"))
    there.answer = lambda body: at.Text(good(span))
    made = ask(span)
    assert made.maker == "extractive" and "what it replaces has" in made.note


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_no_second_try_mends_is_not_tried_again(
    there: at.Provider, span: Span, status: int
) -> None:
    there.then(at.Failure(status, "some_error", "with sk-ant-private words"))
    made = ask(span, retries=2)
    assert made.maker == "extractive" and str(status) in made.note
    assert "private" not in made.note and len(there.bodies) == 1


def test_a_model_without_a_temperature_is_asked_without(there: at.Provider, span: Span) -> None:
    there.then(
        at.Failure(400, "invalid_request_error", "temperature: not supported by this model"),
        at.Text(good(span)),
    )
    assert ask(span).maker == "anthropic"
    assert "temperature" not in there.bodies[1]


@pytest.mark.fault("C10")
def test_silence_ends(there: at.Provider, span: Span) -> None:
    there.then(at.Silence())
    made = ask(span, seconds=0.2)
    assert made.maker == "extractive" and "in time" in made.note


def test_load_is_waited_out_by_the_client(there: at.Provider, span: Span) -> None:
    there.then(at.Overloaded(), at.Text(good(span)))
    made = ask(span, retries=1)
    assert made.maker == "anthropic" and made.usage["requests"] == 1


def test_batches_go_on_from_the_summary_of_those_before(there: at.Provider) -> None:
    span = span_of(talk_of(*(f"part {n} " * 800 for n in range(6))), previous="<summary>old")
    replies = [good(span, f"after request {n}") for n in range(20)]
    there.answer = lambda body: at.Text(replies[len(there.bodies) - 1])
    made = ask(span, window=18_000)
    assert len(there.bodies) > 2
    assert made.text == stored(span, replies[len(there.bodies) - 1])
    said = [body["messages"][0]["content"] for body in there.bodies]
    assert "<summary>old" in said[0]
    for number, text in enumerate(said[1:]):
        assert f"after request {number}" in text
    assert all(sum(f"part {n} " in text for text in said) == 1 for n in range(6))


def test_a_block_larger_than_the_window_is_cut_in_its_middle(there: at.Provider) -> None:
    span = span_of(talk_of("begin " + "😀" * 100_000 + " end"))
    there.answer = lambda body: at.Text(good(span))
    assert ask(span, window=20_000).maker == "anthropic"
    whole = "".join(body["messages"][0]["content"] for body in there.bodies)
    assert "begin 😀" in whole and "😀 end" in whole and "characters are left out" in whole


def test_a_window_too_small_is_said(there: at.Provider, span: Span) -> None:
    made = ask(span, window=8_000)
    assert (made.maker, there.bodies) == ("extractive", [])
    assert "window is too small" in made.note
