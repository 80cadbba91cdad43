"""Pages in a real browser: the content security policy allows them to work, and nothing else."""

import json
import urllib.request

import pytest

from contextlab import environment

MANIFEST = environment.ROOT / "contextlab/static/contextlab/manifest.json"


@pytest.fixture(scope="module")
def script() -> str:
    """The address of the built main script."""
    return "/static/contextlab/" + json.loads(MANIFEST.read_text())["src/main.ts"]["file"]


def test_built_files_are_kept_for_ever_and_come_compressed(served, script):
    request = urllib.request.Request(served.address + script, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.headers["Content-Encoding"] == "gzip"
    with urllib.request.urlopen(f"{served.address}/static/contextlab/manifest.json") as answer:
        assert "immutable" not in answer.headers.get("Cache-Control", "")


def test_a_page_hears_what_it_watches(page):
    page.goto("/")
    heard = page.evaluate(
        """() => new Promise((heard, failed) => {
            const socket = new WebSocket(`ws://${location.host}/ws/live/`);
            socket.onopen = () => socket.send(JSON.stringify({watch: ["sessions"]}));
            socket.onmessage = (message) => heard(JSON.parse(message.data));
            socket.onclose = (end) => failed(new Error(`closed: ${end.code}`));
        })"""
    )
    # Other files have used the server: how far its sessions are is not known.
    assert heard.keys() == {"topic", "version"}
    assert heard["topic"] == "sessions" and heard["version"] >= 0


def test_the_guard_sees_what_the_policy_stops(browser, served):
    # The `page` fixture guarantees that a violated policy reaches the console.
    context = browser.new_context()
    opened = context.new_page()
    served.let_in(context)
    opened.goto(served.address)
    with opened.expect_console_message(lambda said: "elsewhere.invalid" in said.text) as image:
        opened.evaluate("() => { new Image().src = 'http://elsewhere.invalid/x.png'; }")
    with opened.expect_console_message(lambda said: "style-src" in said.text) as style:
        opened.evaluate("() => { document.body.setAttribute('style', 'color: red'); }")
    context.close()
    assert "img-src" in image.value.text
    assert (image.value.type, style.value.type) == ("error", "error")


def test_pages_work_below_a_root_path_that_a_proxy_keeps_or_removes(browser, server_with):
    server = server_with(CONTEXTLAB_ROOT_PATH="/lab")
    assert server.login.startswith(f"{server.address}/lab/login/")
    context = browser.new_context()
    server.let_in(context)
    opened = context.new_page()
    answers: dict[str, int] = {}
    opened.on("response", lambda answer: answers.update({answer.url: answer.status}))
    for root in ("/lab", ""):
        opened.goto(f"{server.address}{root}/sessions/", wait_until="networkidle")
        assert opened.evaluate("document.styleSheets.length") > 0
    failed = {url: status for url, status in answers.items() if status >= 400}
    assert not failed
    assert {url.rpartition(".")[2] for url in answers if "/lab/static/" in url} >= {"css", "js"}
    for root in ("/lab", ""):
        assert opened.evaluate(LISTENS, f"ws://{server.address.removeprefix('http://')}{root}")
        bare = f"{server.address}{root}/static/contextlab/manifest.json"
        assert urllib.request.urlopen(bare).status == 200
    context.close()


LISTENS = """(base) => new Promise((heard, failed) => {
    const socket = new WebSocket(`${base}/ws/live/`);
    socket.onopen = () => socket.send(JSON.stringify({watch: ["sessions"]}));
    socket.onmessage = () => heard(true);
    socket.onclose = (end) => failed(new Error(`closed: ${end.code}`));
})"""
