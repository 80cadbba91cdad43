"""Hand a context to an agent: rendered for its provider, recorded, and cut to what it lacks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from threading import Lock
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from compaction import render
from compaction.context.blocks import Block
from compaction.context.wire import WireBlock
from compaction.render.content import readable
from sessions.access import may_write
from sessions.actions.budgets.approvals import Admission, admit
from sessions.actions.live.managed import Plan, record_context
from sessions.actions.live.offers import Offer, offer
from sessions.api.web.exchange import json_answer, json_bytes
from sessions.models import ManagedContext
from sessions.models.record.values import wire_blocks

Format = Literal["anthropic", "openai", "pairs", "blocks"]

SESSIONS = 16
"""Sessions of which a process keeps the blocks of the last context, which must not be changed."""

REMEMBERED = 256
"""Contexts of which a process knows the hashes of their messages, to send only what is new."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a context is wanted: for which provider, with cache breakpoints or not, and since which
    context that the agent still has."""

    format: Format = "anthropic"
    breakpoints: bool = True
    since: str = ""


class NoRoom(Exception):
    """The budgets have no room for the call; `answer` has the fields of a budget check."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["reason"])
        self.answer = answer


def hand_out(
    request: HttpRequest,
    plan: Plan,
    form: Form,
    *,
    managed: ManagedContext | None = None,
    goes_out: bool = True,
) -> dict[str, Any]:
    """The context of a plan as the fields of a response; recorded as sent if the requester may
    write. `managed` is the one being reproduced, `goes_out` whether a model will get it.

    Raises NoRoom.
    """
    wires = _wires_of(plan)
    plan, offered = offer(plan, wires, form.format, managed) if plan.tooled else (plan, None)
    admission = Admission(None)
    if goes_out and plan.budgeted and may_write(request):
        admission = admit(plan.session, plan.standing.used, plan.step, timezone.now())
    if admission.answer is not None:
        raise NoRoom(admission.answer)
    handed = managed.pk if managed is not None else None
    if managed is None and may_write(request):
        handed = record_context(plan, form.format).pk
    body = _rendered(plan, wires, form)
    choice = offered.choice(body, form.format) if offered is not None else None
    return {
        "context_id": handed,
        "format": form.format,
        "step": plan.step,
        "revision": plan.revision,
        "seq": plan.seq,
        "tokens": plan.standing.used,
        "budget": asdict(plan.standing),
        "budgets": list(admission.budgets),
        "missing": list(plan.missing),
        "recited": plan.ending.tokens,
        "retry_of": plan.retry_of,
        "toolset": _toolset(offered) if offered is not None else None,
        **({"tool_choice": choice} if choice is not None else {}),
        **_news(plan.session.pk, handed, form.since, body),
    }


_wires: OrderedDict[UUID, dict[str, WireBlock]] = OrderedDict()
_guard = Lock()


def _wires_of(plan: Plan) -> dict[str, WireBlock]:
    """The blocks of a context in wire form; most are those of the session's last one."""
    session = plan.session.pk
    with _guard:
        known = _wires.get(session)
    wires = wire_blocks(plan.session, plan.blocks, known)
    originals = {block.sha: wires[block.id] for block in plan.blocks if block.replaces is None}
    with _guard:
        _wires[session] = originals
        _wires.move_to_end(session)
        if len(_wires) > SESSIONS:
            _wires.popitem(last=False)
    return wires


def _toolset(offered: Offer) -> dict[str, object]:
    return {
        "number": offered.tooling.row.number,
        "state": offered.state,
        "listed": list(offered.listed),
        "allowed": list(offered.allowed),
        "left_out_tokens": offered.left_out,
    }


def _rendered(plan: Plan, wires: Mapping[str, WireBlock], form: Form) -> dict[str, Any]:
    # The caller renders blocks itself.
    shown = wires if form.format == "blocks" else readable(plan.session.model, wires)

    def wire_of(block: Block) -> WireBlock:
        return shown[block.id]

    if form.format == "openai":
        return render.openai(plan.blocks, wire_of, plan.ending)
    if form.format == "pairs":
        return render.pairs(plan.blocks, wire_of, plan.ending)
    if form.format == "blocks":
        return render.as_blocks(plan.blocks, wire_of, plan.ending)
    # Always present, so that they can be passed on even if empty.
    parts: dict[str, Any] = {"system": [], "tools": []}
    made = render.anthropic(
        plan.blocks, wire_of, plan.ending, breakpoints=form.breakpoints, ttl=plan.ttl
    )
    return parts | made


# What the agent lacks


class _Shown(NamedTuple):
    """Hashes of the parts of a context."""

    setup: dict[str, int]
    messages: Sequence[int]


_shown: OrderedDict[tuple[UUID, str], _Shown] = OrderedDict()


def _news(session: UUID, handed: str | None, since: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body with its messages encoded, and without what the context `since` also has.

    This process must have made that context; otherwise everything is sent.
    """
    if "messages" not in body:
        return body
    parts = [name for name in ("system", "tools") if name in body]
    setup = {str(name): hash(_encoded(body[name])) for name in parts}
    encoded = [_encoded(message) for message in body["messages"]]
    shown = _Shown(setup, [hash(message) for message in encoded])
    with _guard:
        old = _shown.get((session, since)) if since else None
        if handed:
            _shown[session, handed] = shown
            if len(_shown) > REMEMBERED:
                _shown.popitem(last=False)
    keep = 0
    if old is not None:
        pairs = zip(old.messages, shown.messages, strict=False)
        keep = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        for name in [name for name in setup if old.setup.get(name) == setup[name]]:
            body[name] = None
    news = [msgspec.Raw(message) for message in encoded[keep:]]
    return {**body, "since": since if old is not None else None, "keep": keep, "messages": news}


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def context_answer(fields: dict[str, Any], status: int = 200) -> HttpResponse:
    """A response with the fields of `hand_out`."""
    if "messages" not in fields:
        return json_answer(fields, status)
    return json_bytes(_encoded(fields), status)
