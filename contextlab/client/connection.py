"""HTTP connection of the client: requests, retries, and errors."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import socket
import ssl
import time
import uuid
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote

import httpx2

PATIENCE = 180.0
"""How long a request is tried again by default, in seconds."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds between attempts that say no Retry-After: the first pause, doubled up to the longest."""
OVER_BUDGET, PAUSED = 402, 423
_AGAIN = frozenset({429, 502, 503, 504})


class Refused(Exception):
    """The server refused the request permanently: a problem with status, title and fields."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status, self.problem = status, dict(problem)
        said = str(problem.get("detail") or problem.get("title") or "no reason given")
        pointers = [str(error.get("pointer") or "") for error in problem.get("errors", ())]
        fields = ", ".join(pointer for pointer in pointers if pointer not in said)
        super().__init__(f"{status}: {said}" + (f" ({fields})" if fields else ""))


class OverBudget(Refused):
    """A budget refused the call: `require_approval` if a person can still approve it; `budgets`
    lists the state of each."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(status, problem)
        self.require_approval = bool(problem.get("require_approval"))
        self.approval = problem.get("approval")
        self.budgets = list(problem.get("budgets") or ())


class Paused(Refused):
    """A person has paused the session; `retry_after` says in how many seconds to ask again."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float = 5.0) -> None:
        super().__init__(status, problem)
        self.retry_after = retry_after


class Unreachable(Exception):
    """No answer in time. Repeating the same call on this connection is safe: it reuses
    the Idempotency-Key, so nothing is stored twice."""


class Misaddressed(Unreachable):
    """No answer, and trying again would not help: the certificate is not trusted, there is no TLS
    at the port, or there is no such name."""


class Connection:
    """A server and a key; `url` and `token` default to CONTEXTLAB_URL and CONTEXTLAB_TOKEN.

    While the server is away or busy, a request is tried again for `patience` seconds; `timeout` is
    per attempt, in seconds. Raises ValueError without a token.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = PATIENCE,
    ) -> None:
        self.url = (url or os.environ.get("CONTEXTLAB_URL") or "http://127.0.0.1:8765").rstrip("/")
        token = token or os.environ.get("CONTEXTLAB_TOKEN")
        if not token:
            raise ValueError(
                "No token. Pass one or set CONTEXTLAB_TOKEN; `contextlab token create "
                "--team NAME` creates it."
            )
        self._http = httpx2.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
        )
        self.patience = patience
        self._unanswered: dict[str, str] = {}

    def hurried(self, patience: float) -> Self:
        """Return this connection with less patience, for callers that cannot wait."""
        twin = copy.copy(self)
        twin.patience = min(self.patience, patience)
        return twin

    def request(
        self, method: str, address: str, body: Any = None, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send an API request below /api/v1/, with retries.

        All attempts carry the same Idempotency-Key. Raises Refused and Unreachable, at once if it
        is Misaddressed.
        """
        content = None if body is None else _encoded(body)
        return _body(self._answer(method, address, content, query))

    def upload(self, address: str, content: bytes, query: Mapping[str, Any]) -> dict[str, Any]:
        """Send bytes as they are, with retries. Raises Refused and Unreachable."""
        return _body(self._answer("POST", address, content, query, "application/octet-stream"))

    def download(self, address: str) -> bytes:
        """Get the bytes at an address. Raises Refused and Unreachable."""
        answer = self._answer("GET", address)
        if not answer.is_success:
            _body(answer)
        return bytes(answer.content)

    def _answer(
        self,
        method: str,
        address: str,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> httpx2.Response:
        asked = {k: v for k, v in (query or {}).items() if v is not None}
        given = {k: _text(v) if isinstance(v, str) else v for k, v in asked.items()}
        named = json.dumps([method, address, given]).encode()
        call = hashlib.sha256(named + b"\n" + (content or b"")).hexdigest()
        key = self._unanswered.get(call) or uuid.uuid4().hex
        headers = {} if method == "GET" else {"Idempotency-Key": key}
        if content is not None:
            headers["Content-Type"] = kind
        limit, pause, last = time.monotonic() + self.patience, FIRST_PAUSE, ""
        while True:
            wait = pause * random.uniform(0.5, 1)  # noqa: S311 (no secret)
            try:
                answer = self._http.request(
                    method, address, content=content, params=given, headers=headers
                )
            except httpx2.TransportError as error:
                if (lasting := _lasting(self.url, error, again=bool(last))) is not None:
                    raise lasting from error
                last = f"{type(error).__name__}: {error}"
            else:
                if answer.status_code not in _AGAIN or _over_quota(answer, self.patience):
                    self._unanswered.pop(call, None)
                    return answer
                last = f"status {answer.status_code}"
                wait = _retry_after(answer, wait)
            if time.monotonic() + wait > limit:
                break
            time.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)
        if method != "GET":
            self._unanswered[call] = key
        raise Unreachable(f"{self.url} did not answer {method} {address}: {last}")

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lasting(url: str, error: BaseException, *, again: bool) -> Misaddressed | None:
    """The error of a request that would fail again; a name must have failed before, because a
    network that just came up knows none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError | socket.gaierror):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Misaddressed(
            f"The certificate of {url} is not trusted: {cause.verify_message}. Use the name that "
            "it is for; set SSL_CERT_FILE to the certificate of an authority of your own"
        )
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return Misaddressed(f"{url} does not speak TLS. Use its address with http://")
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME and again:
        return Misaddressed(f"There is no server of the name in {url}. Check the address")
    return None


def _over_quota(answer: httpx2.Response, patience: float) -> bool:
    """Whether a quota of the team is used up for longer than a request waits."""
    return (
        answer.status_code == 429
        and _retry_after(answer, 0) > max(patience, LONGEST_PAUSE)
        and b'"quota"' in answer.content
    )


def raise_if_refused(check: Mapping[str, Any]) -> None:
    """Raise Paused or OverBudget if a budget check refuses the call."""
    problem = {**check, "detail": check["reason"]}
    if check.get("paused"):
        raise Paused(PAUSED, problem, check["retry_after"])
    if not check["can_proceed"]:
        raise OverBudget(OVER_BUDGET, problem)


def path(part: str) -> str:
    """Escape an id as one path segment."""
    # The HTTP client takes plain "." and ".." for folders, and would ask for another address.
    return quote(part, safe="", errors="replace") if part.strip(".") else part.replace(".", "%2E")


def _encoded(body: Any) -> bytes:
    """A body as JSON; half a character, as in names of files that are no UTF-8, as its escape."""
    written = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return written.encode("utf-8", "backslashreplace")


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


def _body(answer: httpx2.Response) -> dict[str, Any]:
    try:
        body = answer.json() if answer.content else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):  # as of a proxy, or of no ContextLab
        body = {"title": answer.reason_phrase}
    if answer.status_code == PAUSED:
        raise Paused(PAUSED, body, _retry_after(answer, 5.0))
    if answer.is_redirect:  # as from http to https: what was sent must not go elsewhere unasked
        body = {"title": f"the server is at {answer.headers['Location']}"}
    if not answer.is_success:
        raise (OverBudget if answer.status_code == OVER_BUDGET else Refused)(
            answer.status_code, body
        )
    return dict(body)


def _retry_after(answer: httpx2.Response, otherwise: float) -> float:
    """What the server asks for, and up to half more: those it turned away together should not come
    back together."""
    try:
        return float(answer.headers.get("Retry-After", "")) * random.uniform(1, 1.5)  # noqa: S311
    except ValueError:
        return otherwise
