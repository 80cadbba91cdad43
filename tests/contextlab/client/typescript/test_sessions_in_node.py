"""Sessions of the TypeScript client, its retries and its errors; also in a browser."""

from __future__ import annotations

from typing import Any

from contextlab.client import ContextLab
from tests.conftest import Server
from tests.contextlab.client.test_examples import key_of
from tests.contextlab.client.typescript.programs import CLIENT, Programs, lab, node

__all__ = ["lab", "node"]


def test_it_waits_what_retry_after_says_until_it_has_no_patience_left(node: Programs) -> None:
    busy, away, patient, again = node.run("session", "patience")
    assert busy["result"][0] == away["result"][0] == again["result"][0] == "none"
    assert len({*busy["slept"]}) == 9 and all(7 <= one <= 10.5 for one in busy["slept"])
    assert away["slept"][0] <= 0.2 and 5 <= away["slept"][-1] <= 10
    assert patient["result"][0] == "Unreachable" and 160 < sum(patient["slept"]) <= 180
    for one in (busy, away, patient):
        assert len({*one["keys"]}) == 1, "all attempts have one key"
    assert len({*(key for one in (busy, away, patient) for key in one["keys"])}) == 3
    assert again["keys"] == patient["keys"][:1], "the same call later carries the same key"


def test_a_session_by_itself(lab: ContextLab, node: Programs) -> None:
    seen = node.run("session", "whole")
    assert (seen["lines"], seen["version"], seen["outcome"]) == ("host kelp", 1, "succeeded")
    assert seen["subscribed"] == "kelp"
    assert "Kelp stands at port 8417." in seen["found"]
    assert "<knowledge>Kelp stands at port 8417.</knowledge>" in seen["board"]
    assert [len(messages) for messages in seen["steps"]] == [1, 2]
    assert seen["context"]["model"] == "claude-sonnet-5"
    assert "tools" not in seen["context"]
    why, verdict = seen["why"], seen["verdict"]
    assert (why["text"], why["run"], why["sentence"] != "") == ("8417", "recorded", True)
    assert (why["seen"][0]["entry"], verdict["sentence"]) == ("1", None)
    assert seen["missing"]["is_error"] and "ref is missing" in str(seen["missing"])
    assert seen["wrong"]["is_error"] and seen["wrong"]["tool_use_id"] == "t2"
    stored = lab.request("GET", "sessions/ts%2Frun%201/messages")["messages"]
    assert [one["role"] for one in stored] == ["user", "system", "assistant"]


def test_problems_are_typed(node: Programs) -> None:
    fields, key, missing, dots = node.run("session", "problems")
    assert fields[0] == 422 and fields[1]["errors"][0]["pointer"].startswith("/messages/1/content")
    assert (key[0], missing[0], dots[0]) == (401, 404, "TypeError")


def files(route: Any) -> None:
    """Answer a page's requests for files of the package."""
    name = route.request.url.rpartition("/client/")[2]
    if name == "index.html":
        return route.fulfill(body="<!doctype html><title>Page</title>", content_type="text/html")
    return route.fulfill(path=CLIENT / "dist" / name, content_type="text/javascript")


READS = """async ([url, token]) => {
  const { ContextLab } = await import('/client/index.js');
  const lab = new ContextLab({ url, token, patience: 0 });
  try {
    const session = await lab.session('ts page', { model: 'claude-sonnet-5' });
    await session.append({ role: 'user', content: 'Hi.' });
    return (await session.context()).messages.length;
  } catch (error) {
    return error.name;
  }
}"""


def test_a_page_of_the_server_reads_a_context_and_one_from_elsewhere_does_not(
    browser: Any, served: Server, lab: ContextLab, node: Programs
) -> None:
    page = browser.new_page()
    page.route("**/client/**", files)
    read = {}
    for origin in ("http://elsewhere.test", served.address):
        page.goto(f"{origin}/client/index.html")
        read[origin] = page.evaluate(READS, [served.address, key_of(lab)])
    page.close()
    assert [*read.values()] == ["Unreachable", 1], "no CORS headers"
