"""What aider inserts, as aider-chat 0.86.2 sends it."""

from __future__ import annotations

import openai

from contextlab.client import ContextLab
from contextlab.proxy.inserted import with_inserted
from contextlab.proxy.recognized import recognized
from tests.contextlab.client.test_client import lab
from tests.contextlab.proxy.test_proxy import key_of, proxy
from tests.contextlab.proxy.test_proxy_openai import gpt
from tests.provider_openai import OpenAIProvider, Says

__all__ = ["gpt", "lab"]

RULES = "# Rules:\n\nEvery block must use this format, and nothing else at all."
SYSTEM = ("system", f"Act as an expert.\n{RULES}")
EXAMPLES = [
    ("user", "Change get_factorial()"),
    ("assistant", "To make this change…"),
    ("user", "I switched to a new code base. Please don't consider the above files."),
    ("assistant", "Ok."),
]


def files(text: str) -> list[tuple[str, str]]:
    said = f"I have *added these files to the chat* so you can go ahead.\n\n{text}"
    return [("user", said), ("assistant", "Ok, any changes I propose will be to those files.")]


def messages(*said: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in said]


FIRST = messages(SYSTEM, *EXAMPLES, *files("a"), ("user", f"Print b.\n\n{RULES}"))
SECOND = messages(
    SYSTEM,
    *EXAMPLES,
    ("user", "Print b."),
    ("assistant", "Here."),
    ("user", "I committed the changes with git hash 1 & commit msg: x"),
    ("assistant", "Ok."),
    *files("b"),
    ("user", f"Print c.\n\n{RULES}"),
)


def test_what_aider_inserts_is_marked() -> None:
    marked = with_inserted({"messages": SECOND})["messages"]
    said = [one["content"] for one in marked if one.get("kind") != "memory"]
    assert said == [SYSTEM[1], "Print b.", "Here.", "Print c."]
    assert marked[-1]["content"] == [{"type": "text", "text": RULES}]
    assert [one.get("human") for one in marked[-2:]] == [None, False]


def test_other_replies_stay_as_they_are() -> None:
    body = {"messages": messages(("user", "Is it done?"), ("assistant", "Ok."), ("user", "Good."))}
    assert with_inserted(body) is body


def test_a_session_of_aider_is_named_by_its_task() -> None:
    first, second = (recognized({}, with_inserted({"messages": one})) for one in (FIRST, SECOND))
    assert first == second
    assert (first.agent, first.title) == ("aider", "Print b.")
    other = [*FIRST[:-1], {"role": "user", "content": f"Print d.\n\n{RULES}"}]
    assert recognized({}, with_inserted({"messages": other})).session != first.session


def _named() -> str:
    as_sent = [{**one, "content": [{"type": "text", "text": one["content"]}]} for one in FIRST]
    return recognized({}, with_inserted({"messages": as_sent, "system": []})).session


def test_steps_and_turns_are_those_of_the_model_and_the_person(
    lab: ContextLab, gpt: OpenAIProvider
) -> None:
    gpt.then(Says("Here."), Says("There."), Says("Done."))
    third = messages(
        *[(one["role"], one["content"]) for one in SECOND[:9]],
        *files("c"),
        ("user", "Print c."),
        ("assistant", "There."),
        ("user", f"Print d.\n\n{RULES}"),
    )
    with proxy(lab.url, gpt) as url:
        address = f"{url}/{key_of(lab)}/openai/v1"
        with openai.OpenAI(api_key="none", base_url=address) as client:
            for asked in (FIRST, SECOND, third):
                client.chat.completions.create(model="gpt-5.1", messages=asked)  # type: ignore[arg-type]
    session = lab.request("GET", f"sessions/{_named()}")
    assert (session["steps"], session["turns"], session["title"]) == (3, 3, "Print b.")
