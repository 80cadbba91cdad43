"""Hand a context to an agent: rendered for its provider, recorded, and cut to what it lacks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile, zip_longest
from threading import Lock
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from compaction import render
from compaction.context.blocks import Block
from compaction.context.wire import WireBlock, block_of
from compaction.prices.prefill import REFUSED, refuses_prefill
from compaction.render.images import readable
from sessions.access import may_write
from sessions.actions.budgets.approvals import Admission, admit
from sessions.actions.live.handing_out.next_call import (
    Offer,
    offer,
    offers_read_back,
    with_hidden,
    with_read_back,
)
from sessions.actions.live.handing_out.offload_files import Names, with_paths
from sessions.actions.live.handing_out.one_turn import keep_sent, sent_before
from sessions.actions.live.managed import Plan, record_context
from sessions.api.live.last_context import keep_last, last_of
from sessions.api.live.needs import needs_of, one_turn_text
from sessions.api.web.exchange import json_answer, json_bytes
from sessions.models import ManagedContext, Session
from sessions.models.record.values import wire_blocks
from sessions.models.web.shown import value, view

Format = Literal["anthropic", "openai", "responses", "gemini", "pairs", "blocks"]

REMEMBERED = 256
"""Contexts whose message hashes a process knows, to send only what is new."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a context is wanted: for which provider, with cache breakpoints or not, since which
    context that the agent still has, with the tool `read_back` where its policy edits, and with
    which folder in place of references."""

    format: Format = "anthropic"
    breakpoints: bool = True
    since: str = ""
    read_back: bool = True
    offloads: str = ""


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
    read_back = form.read_back and offers_read_back(plan, form.format)
    offered = None
    if plan.tooled:
        plan, offered = offer(plan, wires, form.format, managed, read_back=read_back)
        read_back = read_back and (offered is None or offered.read_back)
    plan = with_read_back(plan, wires, managed, files=bool(form.offloads)) if read_back else plan
    plan, files = _with_paths(plan, form.offloads.rstrip("/"), managed)
    admission = _admitted(plan) if goes_out and may_write(request) else Admission(None)
    handed = managed.pk if managed is not None else None
    if managed is None and may_write(request):
        handed = record_context(plan, form.format).pk
    takes_system = plan.one_turn if managed is None else managed.one_turn
    body = _rendered(plan, wires, form, takes_system=takes_system)
    if handed is not None and managed is None and goes_out and (text := one_turn_text(body)):
        keep_sent(plan, text)
    if _ends_with_agent(body) and refuses_prefill(plan.session.model):
        body["notes"] = [*body["notes"], REFUSED]
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
        **(needs_of(plan.session.model, body) if form.format == "anthropic" else {}),
        **_news(plan.session, handed, form.since, body, files),
    }


def _admitted(plan: Plan) -> Admission:
    """What the budgets say of the call. Raises NoRoom."""
    if not plan.budgeted:
        return Admission(None)
    found = admit(plan.session, plan.standing.used, plan.step, timezone.now())
    if found.answer is not None:
        raise NoRoom(found.answer)
    return found


def _ends_with_agent(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages") or [{}]
    return messages[-1].get("role") == "assistant"


def _wires_of(plan: Plan) -> dict[str, WireBlock]:
    """The originals of a context in wire form; most are those of the session's last one."""
    known = {**last_of(plan.session).wires, **plan.wires}
    originals = [block for block in plan.blocks if block.replaces is None]
    found = wire_blocks(plan.session, [block for block in originals if block.id not in known])
    wires = {block.id: known.get(block.id) or found[block.id] for block in originals}
    keep_last(plan.session, wires=wires)
    return dict(wires)


def _with_paths(plan: Plan, folder: str, managed: ManagedContext | None) -> tuple[Plan, Names]:
    """A plan with files in place of references, and their names; without a folder, none."""
    if not folder:
        return plan, ()
    shown, named, files = with_paths(plan, folder, last_of(plan.session).named)
    keep_last(plan.session, named=named)
    if managed is None:
        pairs = zip(shown.blocks, plan.blocks, strict=True)
        more = sum(new.tokens - old.tokens for new, old in pairs)
        shown = with_hidden(shown, plan.session.scaled(more))
    return shown, files


def _toolset(offered: Offer) -> dict[str, object]:
    return {
        "number": offered.tooling.row.number,
        "state": offered.state,
        "listed": list(offered.listed),
        "allowed": list(offered.allowed),
        "left_out_tokens": offered.left_out,
        "left_out": [{"tool": one, "reason": why} for one, why in offered.reasons.items()],
        "next": [{"tool": one.tool, "share": one.share} for one in offered.likely],
    }


_PLAIN = {
    "openai": render.openai,
    "responses": render.responses,
    "gemini": render.gemini,
    "pairs": render.pairs,
}


def _rendered(
    plan: Plan, wires: Mapping[str, WireBlock], form: Form, *, takes_system: bool
) -> dict[str, Any]:
    def stored(block: Block) -> WireBlock:
        return wires[block.id] if block.replaces is None else block_of(block)

    if form.format == "blocks":
        # The caller renders them.
        return render.as_blocks(plan.blocks, stored, plan.ending)
    model = plan.session.model
    wire_of = readable(model, stored)
    if plain := _PLAIN.get(form.format):
        return plain(plan.blocks, wire_of, plan.ending)
    last = last_of(plan.session)
    earlier = sent_before(plan, last.said) if takes_system else {}
    made, prefix = render.anthropic_from(
        last.prefix if last.model == model else None,
        plan.blocks,
        wire_of,
        replace(plan.ending, earlier=earlier),
        breakpoints=form.breakpoints,
        ttl=plan.ttl,
        system_messages=takes_system,
    )
    keep_last(plan.session, model=model, prefix=prefix, said=earlier)
    # Always present, so that they can be passed on even if empty.
    return {"system": [], "tools": [], **made}


# What the agent lacks


class _Shown(NamedTuple):
    """Hashes of the parts of a context, and the files it names."""

    setup: dict[str, int]
    messages: Sequence[int]
    files: Names


_guard = Lock()
_shown: OrderedDict[tuple[UUID, str], _Shown] = OrderedDict()


def _news(
    session: Session, handed: str | None, since: str, body: dict[str, Any], files: Names
) -> dict[str, Any]:
    """The body with its messages encoded and its files, without what the context `since` also has.

    This process must have made that context; otherwise everything is sent.
    """
    if "messages" not in body:
        return {**body, "files": files}
    parts = [name for name in ("system", "tools") if name in body]
    setup = {str(name): hash(msgspec.json.encode(body[name])) for name in parts}
    sent = _sent(session, body["messages"])
    shown = _Shown(setup, [hashed for _, _, hashed in sent], files)
    with _guard:
        old = _shown.get((session.pk, since)) if since else None
        if handed:
            _shown[session.pk, handed] = shown
            if len(_shown) > REMEMBERED:
                _shown.popitem(last=False)
    keep = 0
    if old is not None:
        pairs = zip(old.messages, shown.messages, strict=False)
        keep = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        for name in [name for name in setup if old.setup.get(name) == setup[name]]:
            body[name] = None
        has = set(old.files)
        files = tuple(name for name in files if name not in has)
    news = [msgspec.Raw(encoded) for _, encoded, _ in sent[keep:]]
    made = {"since": since if old is not None else None, "keep": keep, "messages": news}
    return {**body, **made, "files": files}


def _sent(session: Session, messages: Sequence[Any]) -> Sequence[tuple[Any, bytes, int]]:
    """Messages with their JSON and its hash; those of the last context are known."""
    sent = []
    for message, old in zip_longest(messages, last_of(session).sent[: len(messages)]):
        known = old is not None and old[0] is message
        sent.append(old if known else _encoded_message(message))
    keep_last(session, sent=sent)
    return sent


def _encoded_message(message: Any) -> tuple[Any, bytes, int]:
    encoded = msgspec.json.encode(message)
    return message, encoded, hash(encoded)


def context_answer(fields: dict[str, Any], status: int = 200) -> HttpResponse:
    """A response with the fields of `hand_out`, as the reader sees them."""
    if view() is not None:
        return json_answer(value(msgspec.json.decode(msgspec.json.encode(fields))), status)
    if "messages" not in fields:
        return json_answer(fields, status)
    return json_bytes(msgspec.json.encode(fields), status)
