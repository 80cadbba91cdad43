"""Client sessions."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from contextlab.client.answers import Appended, Context
from contextlab.client.connection import Connection, Refused, path, raise_if_refused
from contextlab.client.messages import batch_of, failed_result, headers_for, reported
from contextlab.client.offload_files import OffloadFiles

log = logging.getLogger(__name__)

_WANTED = ("wait", "breakpoints", "read_back")
"""Fields of a step that say how its context is wanted."""


class Session:
    """One agent's session; created by `ContextLab.session`."""

    def __init__(
        self, server: Connection, known: Mapping[str, Any], files: OffloadFiles | None = None
    ) -> None:
        self._server, self._files = server, files
        self.id = str(known["id"])
        self.external_id = str(known["external_id"])
        self.model = str(known.get("model") or "")
        self.url = str(known.get("url") or "")
        self.is_new = not known.get("messages")
        """Whether it had no messages when it was created or updated."""
        self._address = f"sessions/{path(self.id)}"
        self._last: dict[str, Any] = {}

    def append(
        self,
        messages: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        heed_advice: bool = False,
        **more: Any,
    ) -> Appended:
        """Add one or several messages in the provider's format; all or none are stored.

        `more`: tools, system, model, usage, call, context_id, history. With `heed_advice` it sleeps
        for the recommended delay when the window is nearly full.
        """
        batch = batch_of(messages)
        raw = self._server.request("POST", f"{self._address}/messages", {"messages": batch, **more})
        advice = raw.get("advice") or {}
        delay = int(advice.get("delay_ms") or 0)
        if heed_advice and delay:
            time.sleep(delay / 1000)
        return Appended(raw["appended"], raw["known"], raw.get("budget") or {}, delay, raw)

    def context(
        self,
        format: str = "anthropic",
        *,
        at: int | None = None,
        wait: float | None = None,
        breakpoints: bool | None = None,
        read_back: bool | None = None,
    ) -> Context:
        """The managed context to send now, or as of a step.

        `wait`: seconds to wait for a summary in progress. `read_back`: False to leave out the tool
        whose calls `read_back_result` answers.
        """
        flags = {"breakpoints": breakpoints, "read_back": read_back}
        said = {name: str(flag).lower() for name, flag in flags.items() if flag is not None}
        query = {"format": format, "at": at, "wait": wait, **said}
        address = f"{self._address}/context"
        raw = self._server.request("GET", address, query={**query, **self._folder})
        if not self._wrote(raw):
            raw = self._server.request("GET", address, query=query)
        return self._context_of(raw)

    def step(
        self,
        messages: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
        *,
        format: str = "anthropic",
        **more: Any,
    ) -> Context:
        """Append the messages of a step and get the next context, in one request.

        `more`: as for `append`, and wait, breakpoints and read_back as for `context`. Only what
        changed since the last context of a step is transferred.
        """
        return self._context_of(deepcopy(self.shared_step(messages, format=format, **more).raw))

    def shared_step(
        self,
        messages: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
        *,
        format: str = "anthropic",
        **more: Any,
    ) -> Context:
        """Like `step`, at a cost that does not grow with the history: the next contexts contain
        the objects of this one, which must not be changed."""
        body: dict[str, Any] = {"format": format, **self._folder, **more}
        if batch := batch_of(messages):
            body["messages"] = batch
        if self._last.get("format") == format:
            body["since"] = self._last["context_id"]
        raw = self._server.request("POST", f"{self._address}/steps", body)
        if not self._wrote(raw):
            wanted = {name: more[name] for name in _WANTED if name in more}
            body = {"format": format, **wanted}
            raw = self._server.request("POST", f"{self._address}/steps", body)
        if raw.get("since"):
            kept = self._last["messages"][: raw["keep"]]
            unchanged = [name for name in ("system", "tools") if raw.get(name, ()) is None]
            same = {name: self._last[name] for name in unchanged}
            raw |= {**same, "messages": [*kept, *raw["messages"]]}
        self._last = raw if raw["context_id"] else {}
        return self._context_of(raw)

    @property
    def _folder(self) -> dict[str, str]:
        return {"offloads": self._files.prefix} if self._files is not None else {}

    def _wrote(self, raw: Mapping[str, Any]) -> bool:
        """Write the files that a context names. If that fails, contexts name references from now
        on: a model must not look for a file that is not there. Raises Unreachable."""
        if self._files is None:
            return True
        try:
            self._files.write(raw.get("files") or (), self._file)
        except (OSError, ValueError, Refused) as error:
            log.warning("offloads are no longer written as files: %s", error)
            self._files = None
        return self._files is not None

    def _file(self, name: str) -> bytes:
        return self._server.download(f"{self._address}/offloads/{path(name)}")

    def _context_of(self, raw: dict[str, Any]) -> Context:
        names = ("system", "tools", "tool_choice", "messages")
        parts = {name: raw[name] for name in names if raw.get(name)} | headers_for(raw)
        parts |= {"model": self.model} if self.model else {}
        return Context(raw["context_id"], raw["step"], raw["tokens"], parts, raw)

    def answer(self, reply: Any, context: Context | None = None) -> Appended:
        """Store the model's reply with its usage, and the context it was given.

        `reply` is a response object of the `anthropic` or `openai` package, or its dict.
        """
        given = reply if isinstance(reply, Mapping) else reply.model_dump(mode="json")
        message, known = reported(given)
        if context and context.id:
            known["context_id"] = context.id
        return self.append(message, **known)

    def reserve(
        self, call: str, tokens: int | None = None, *, heed_advice: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Reserve what the next model call may spend, under your own id; its usage settles it.

        `tokens` defaults to an estimate. `more`: microusd, seconds. Repeating the id reserves
        nothing more. With `heed_advice` it sleeps for the recommended delay. Raises OverBudget
        if the call is refused, and Paused.
        """
        body = {"call": call, "tokens": tokens, **more}
        reported = self._server.request("POST", f"{self._address}/budgets/check", body)
        for warning in reported["warnings"]:
            log.warning("%s", warning)
        raise_if_refused(reported)
        if heed_advice and reported["delay_ms"]:
            time.sleep(reported["delay_ms"] / 1000)
        return reported

    def release(self, call: str = "") -> int:
        """Release the reservation of a call that will not be made, or all; return how many."""
        reported = self._server.request(
            "DELETE", f"{self._address}/reservations", query={"call": call or None}
        )
        return int(reported["released"])

    def read_back(self, ref: str, **selection: Any) -> str:
        """Read an offloaded text, by its reference or the path of its file; select with
        `lines="10-40"`, `grep=`, `head=` or `tail=`."""
        address = self._content(ref)
        return str(self._server.request("GET", address, query=selection)["text"])

    def read_back_result(self, call: Any) -> dict[str, Any]:
        """Answer the model's call of `read_back`: a `tool_result` in Anthropic's form.

        `call` is the `tool_use` block of a reply, or its dict. Images are images. What the model
        asked for wrongly is an error result. Raises Unreachable.
        """
        given = call if isinstance(call, Mapping) else call.model_dump(mode="json")
        asked = dict(given.get("input") or {})
        ref = str(asked.pop("ref", "") or "").strip()
        if not ref:
            return failed_result(given, "ref is missing: pass the reference in the stub.")
        address = self._content(ref)
        query = {name: str(value) for name, value in asked.items() if value is not None}
        try:
            content = self._server.request("GET", address, query=query)["content"]
        except Refused as refused:
            return failed_result(given, str(refused.problem.get("detail") or refused))
        return {"type": "tool_result", "tool_use_id": given["id"], "content": content}

    def _content(self, ref: str) -> str:
        # The server knows the names of files, not the folder.
        return f"{self._address}/content/{path(ref.rpartition('/')[2])}"

    def messages(self, *, tool: str = "") -> list[dict[str, Any]]:
        """All its messages in order, also those that the agent took back; with `tool` only those
        that call it, and the messages next to them."""
        found: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            query = {"after": after, "limit": 500, "tool": tool or None}
            page = self._server.request("GET", f"{self._address}/messages", query=query)
            found, after = [*found, *page["messages"]], page["next"]
        return found

    def pin(self, seq: int) -> None:
        """Keep a message verbatim in every context."""
        self._server.request("POST", f"{self._address}/pins", {"seq": seq})

    def note(self, kind: str, text: str, **more: Any) -> dict[str, Any]:
        """Add a note to the board: task, plan, agent, knowledge or task_done.

        `more`: key, under which a later note replaces it; files it depends on.
        """
        body = {"kind": kind, "text": text, **more}
        return self._server.request("POST", f"{self._address}/notes", body)

    def board(self) -> str:
        """The board of the session's task, or its own, as XML for a model."""
        return str(self._server.request("GET", f"{self._address}/notes", query={"limit": 1})["xml"])

    def share(self, summary: str = "", key: str = "") -> dict[str, Any]:
        """Share current knowledge with subscribed sessions."""
        body = {"summary": summary, "key": key}
        return self._server.request("POST", f"{self._address}/shares", body)

    def subscribe(self, kind: str, value: str = "") -> dict[str, Any]:
        """Subscribe to future shares of an agent, a task, or the team."""
        body = {"session": self.id, "kind": kind, "value": value}
        return self._server.request("POST", "subscriptions", body)

    def search_memory(self, q: str, *, task: str = "", limit: int = 20) -> list[dict[str, Any]]:
        """Search the team's boards and shared summaries; best hits first."""
        query = {"q": q, "task": task, "limit": limit}
        return list(self._server.request("GET", "memory", query=query)["found"])

    def why(self, text: str, **fields: Any) -> dict[str, Any]:
        """Where the model first saw a text, what removed it, when it was needed and what that cost,
        with the answer in `sentence`. `fields`: run, step, policies (True simulates policies)."""
        query = {"text": text, **fields}
        return self._server.request("GET", f"{self._address}/why", query=query)

    def verdict(self) -> dict[str, Any]:
        """What the session cost, how much of that could be avoided, and what it lost. `sentence` is
        None while it goes on, or before it is assessed."""
        return self._server.request("GET", f"{self._address}/verdict")

    def finish(self, outcome: str) -> None:
        """Report the outcome: succeeded, failed or abandoned."""
        self._server.request("PUT", f"sessions/{path(self.external_id)}", {"outcome": outcome})


class ContextLab(Connection):
    """A server and a key; creates sessions."""

    def session(
        self,
        external_id: str,
        *,
        offloads: str | os.PathLike[str] | OffloadFiles | None = None,
        **fields: Any,
    ) -> Session:
        """Create or update a session under your own id.

        With `offloads`, what its contexts name is written as files below that folder, before the
        context is returned, and stubs name their paths.

        `fields`: agent, model, task, title, parent, policy, window, metadata, outcome, opening,
        project. Logs a warning for unknown fields, which go to the metadata.
        """
        if offloads is not None and not isinstance(offloads, OffloadFiles):
            offloads = OffloadFiles(offloads, external_id)
        known = self.request("PUT", f"sessions/{path(external_id)}", fields)
        for note in known.get("notes", ()):
            log.warning("%s", note)
        return Session(self, known, offloads)
