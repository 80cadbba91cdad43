"""Scripts in every field that people and agents fill: each page shows them as text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from typing import Any

import pytest

from sessions.views.web.pages import pages
from tests.browser.agents import Agent, answered
from tests.conftest import Server

SHORT = '"><img src=x onerror="window.broken=1"><script>window.broken=1</script>{{7*7}}'
"""For fields of few characters."""

CORPUS = [
    SHORT,
    "</script><script>window.broken=1</script>",
    "<svg/onload=window.broken=1>",
    "<svg><foreignObject><iframe srcdoc='<script>parent.broken=1</script>'></foreignObject></svg>",
    "<details open ontoggle=window.broken=1>",
    "<body onload=window.broken=1>",
    "<input autofocus onfocus=window.broken=1>",
    "<video><source onerror=window.broken=1></video>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.broken=1>",
    "<template><img src=x onerror=window.broken=1></template>",
    "<a href='javascript:window.broken=1'>a link</a> [x](javascript:window.broken=1)",
    "![x](http://127.0.0.2:9/x.png) <link rel=stylesheet href=//127.0.0.2:9/x.css>",
    "<meta http-equiv=refresh content='0;url=//127.0.0.2:9/'><base href=//127.0.0.2:9/>",
    "'-window.broken=1-' ';window.broken=1//",
    "`${window.broken=1}` {{constructor.constructor('window.broken=1')()}} {% debug %} #{7*7}",
    "<!--><img src=x onerror=window.broken=1>--> <![CDATA[<script>window.broken=1</script>]]>",
    "\x1b]8;;javascript:window.broken=1\x07a link\x1b]8;;\x07\x1b]52;c;eA==\x07\x1b[2J\x1b[",
    "\u202e\u2066\u200b\U000e0041\u2028\u2029 out of order",
    "<plaintext><xmp><textarea><title></textarea></title>",
    "data:text/html,<script>window.broken=1</script>",
]
WRONG = """() => [window.broken ? 'a script ran' : '',
  ...[...document.querySelectorAll('main *')].filter(one =>
    ['SCRIPT', 'IFRAME', 'BASE', 'META', 'OBJECT', 'EMBED', 'LINK'].includes(one.tagName) &&
      one.type !== 'application/json' ||
    [...one.attributes].some(its => its.name.startsWith('on') ||
      /^\\s*(javascript|data:text)/i.test(its.value) && ['href', 'src'].includes(its.name))
  ).map(one => one.outerHTML.slice(0, 200))].filter(Boolean)"""


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """Its every page shows hostile names."""
    return own_server


def import_named(served: Server, token: str, name: str) -> None:
    """Upload a file of that name that is no log."""
    boundary = b"--x\r\nContent-Disposition: form-data; name=files; filename=a.jsonl\r\n\r\n"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-jsonl"}
    query = urllib.parse.urlencode({"name": name})
    address = f"{served.address}/api/v1/imports?{query}"
    answered(urllib.request.Request(address, boundary + name.encode(), headers))


@pytest.mark.fault("G1", "G3", "G4", "G6", "G7")
def test_no_field_becomes_markup(page: Any, token: str, served: Server) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    page.set_default_timeout(30_000)
    about = {"title": SHORT, "agent": SHORT[:60], "task": SHORT, "metadata": {SHORT: SHORT}}
    agent = Agent(served.address, token, "hostile-fields", policy="offload-first", **about)
    for number, text in enumerate([*CORPUS, "\n".join(CORPUS)]):
        call = f"c{number}"
        given = {"file_path": f"/{text}.py", "__proto__": {"x": text}, "constructor": text}
        use = {"type": "tool_use", "id": call, "name": SHORT[:60], "input": given}
        result = {"type": "tool_result", "tool_use_id": call, "content": text}
        messages = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": [{"type": "text", "text": text}, use]},
            {"role": "user", "content": [result]},
        ]
        usage = {"input_tokens": 900 + number, "output_tokens": 20}
        agent.send("/messages", {"messages": messages, "call": call, "usage": usage})
    import_named(served, token, f"{SHORT}.jsonl")
    command = [sys.executable, "-m", "contextlab.cli", "token", "create", "--json"]
    environment = {**os.environ, "CONTEXTLAB_DATA_DIR": str(served.data_dir), "DATABASE_URL": ""}
    for more in (["--team", f"x{SHORT}"[:60]], ["--team", "local", "--name", SHORT[:60]]):
        made = subprocess.run([*command, *more], capture_output=True, text=True, env=environment)
        assert json.loads(made.stdout)["token"], made.stderr
    wrong = []
    shown = [f"/{one.route}" for one in pages() if "<" not in one.route]
    for address in [*shown, f"/sessions/?q={SHORT}", f"/search/?q={SHORT}"]:
        if page.request.get(address).ok:
            page.goto(address)
            wrong += [f"{address}: {one}" for one in page.evaluate(WRONG)]
    page.goto(f"/sessions/{agent.id}/")
    page.locator("[role=slider]").wait_for()
    rows = page.locator("[role=row] .line")
    rows.first.wait_for()
    for number in range(min(rows.count(), 12)):
        rows.nth(number).click()
        page.locator(".message .content").first.wait_for()
        wrong += [f"replay, row {number}: {one}" for one in page.evaluate(WRONG)]
    assert page.locator(".message .content").first.inner_text()
    assert not wrong, "\n".join(wrong)
    page.evaluate("document.querySelector('main a').setAttribute('href', 'javascript:void 0')")
    assert page.evaluate(WRONG), "it finds what it looks for"
