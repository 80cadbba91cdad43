"""Agents for the tests of live pages: they send over the API what a real one would."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any

from tests.conftest import START_SECONDS


def answered(request: urllib.request.Request) -> Any:
    """The JSON of an answer; while the server says that it is busy, as on a machine whose disk is,
    it is asked again when it says, as every client does."""
    limit = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            pause = error.headers.get("Retry-After")
            error.close()
            if pause is None or time.monotonic() > limit:
                raise
            threading.Event().wait(float(pause))


class Agent:
    """One session of an agent that reads a file in every step."""

    def __init__(self, address: str, token: str, name: str, **fields: Any) -> None:
        self.url = f"{address}/api/v1/sessions/{name}"
        self.token = token
        self.steps = 0
        self.context: str | None = None
        self.id = self.send("", {"agent": "tester", "model": "claude-sonnet-4-5"} | fields, "PUT")[
            "id"
        ]

    def send(self, path: str, body: Any, method: str = "POST") -> Any:
        """Sends a JSON body and returns the answer's."""
        return self._ask(path, json.dumps(body).encode(), method)

    def get(self, path: str) -> Any:
        """What is at an address below the session's; the next call was made with its context."""
        found = self._ask(path, None, "GET")
        self.context = found.get("context_id", self.context)
        return found

    def _ask(self, path: str, body: bytes | None, method: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        return answered(request)

    def says(self, text: str) -> Any:
        """A person's message."""
        return self.send("/messages", {"messages": [{"role": "user", "content": text}]})

    def step(self, lines: int = 40) -> Any:
        """One model call that reads a file, the file, and the usage of the call."""
        self.steps += 1
        call = f"call-{self.steps}"
        use = {"type": "tool_use", "id": f"t{self.steps}", "name": "Read"}
        use["input"] = {"file_path": f"/app/part_{self.steps}.py"}
        text = "".join(f"PART_{self.steps}_{line} = {line}\n" for line in range(lines))
        answer = {"type": "tool_result", "tool_use_id": f"t{self.steps}", "content": text}
        messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
        usage = {"input_tokens": 1200 + 400 * self.steps, "output_tokens": 60}
        sent = {} if self.context is None else {"context_id": self.context}
        self.context = None
        body = {"messages": messages, "call": call, "usage": usage} | sent
        return self.send("/messages", body)
