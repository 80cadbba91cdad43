"""Live sessions: creation and updates by agents."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from django.db import transaction

from compaction import tokens
from compaction.prices import prices
from sessions.actions.budgets.budgets import begin_task
from sessions.actions.live import tend
from sessions.actions.live.requests.on_request import request_compaction
from sessions.actions.masking.incoming import incoming
from sessions.actions.policies import guardrails
from sessions.actions.policies.first_policy import policy_for_new
from sessions.actions.policies.overrides import (
    FIELDS,
    RequestedOverrides,
    asked_for,
    changed,
    settle,
)
from sessions.actions.policies.policies import UnknownPolicy, named_version
from sessions.actions.record.append import LIVE, link_parents, touch
from sessions.actions.record.erased import refuse_erased, refuse_gone, refuse_under
from sessions.actions.record.measure import reopen
from sessions.importers.decoded import clean
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Opening, Session, Team

__all__ = ["SessionFields", "Unacceptable", "put_session", "session_fields"]

OUTCOMES = ("succeeded", "failed", "abandoned")
WIDEST = 2**31 - 1
"""Maximum window in tokens, as its column holds."""

_LONGEST = {
    **dict.fromkeys(("agent", "model"), 120),
    **dict.fromkeys(("task", "title", "parent", "project"), 300),
    "opening": 8,
    "parent_call": 200,
    "policy": 100,
    "outcome": 12,
}
"""Maximum length of each text, in characters."""


@dataclass(frozen=True, slots=True)
class SessionFields:
    """The fields of a session in a request; None leaves a field unchanged.

    `parent` is the external id of the session that started this one, `parent_call` the tool call
    that did; `window` is in tokens; `policy` is a preset or a policy of the team, by name or as
    name@version; `asked` holds overrides. `metadata` also receives unknown fields; `unknown` names
    them.
    """

    agent: str | None = None
    model: str | None = None
    task: str | None = None
    title: str | None = None
    parent: str | None = None
    parent_call: str | None = None
    policy: str | None = None
    window: int | None = None
    outcome: str | None = None
    opening: str | None = None
    project: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    asked: RequestedOverrides = field(default_factory=RequestedOverrides)


_NO_TEXTS = {"metadata", "window", "unknown", "asked"}


def session_fields(body: Any) -> SessionFields:
    """Parse the body of a PUT (a JSON value). Raises Unacceptable."""
    if not isinstance(body, dict):
        raise Unacceptable("", "must be an object")
    named = {one.name for one in fields(SessionFields)} - _NO_TEXTS
    texts = {name: _text(body, name) for name in named}
    if texts["outcome"] and texts["outcome"] not in OUTCOMES:
        raise Unacceptable("/outcome", f"must be one of {', '.join(OUTCOMES)}")
    if texts["opening"] and texts["opening"] not in Opening.Wanted.values:
        raise Unacceptable("/opening", f"must be one of {', '.join(Opening.Wanted.values)}")
    metadata = body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise Unacceptable("/metadata", "must be an object")
    known = {*named, "metadata", "window", *FIELDS}
    others = {k: v for k, v in body.items() if k not in known}
    return SessionFields(
        **texts,
        window=_window(body.get("window")),
        metadata=clean({**(metadata or {}), **others}),
        unknown=tuple(others),
        asked=asked_for(body),
    )


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Unacceptable(f"/{name}", "must be text")
    if len(value) > _LONGEST[name]:
        raise Unacceptable(f"/{name}", f"is longer than {_LONGEST[name]} characters")
    return str(clean(value))


def _window(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= WIDEST:
        raise Unacceptable("/window", f"must be a whole number of tokens from 1 to {WIDEST}")
    return value


def put_session(team: Team, external_id: str, fields: SessionFields) -> tuple[Session, bool]:
    """Create or update the session with this external id; also return whether it was created.

    The policy cannot change once there are messages. Raises Unacceptable.
    """
    if fields.parent == external_id:
        raise Unacceptable("/parent", "is the session itself")
    if (masks := incoming(team.pk)) is not None:
        title, metadata = masks.now.value(fields.title), masks.now.value(fields.metadata)
        fields = replace(fields, title=title, metadata=metadata)
    with transaction.atomic():
        its = Session.objects.for_team(team).filter(external_id=external_id)
        if fields.parent and not its.filter(parent_external_id=fields.parent).exists():
            refuse_under(team, fields.parent)
        session, created = Session.objects.select_for_update().get_or_create(
            team=team, external_id=external_id, defaults={"source": LIVE}
        )
        # Now: it may have been erased while its row was awaited.
        refuse_erased(team, external_id)
        refuse_gone(session)
        before, ended = _described(session), session.outcome
        _describe(session, fields)
        _choose_policy(session, fields)
        if created or _described(session) != before:
            touch(session)
            link_parents(team, session)
        _choose_opening(session, fields)
        begin_task(session)
    if session.outcome != ended and session.message_count:
        tend.ask(session)  # assess it now that it is over
        if session.outcome and _compacts_when_done(session):
            request_compaction(session, done=True)
    if session.outcome != ended and session.rollout is not None:
        guardrails.check(session.rollout)
    return session, created


def _compacts_when_done(session: Session) -> bool:
    document = session.policy_document or {"steps": []}
    return any(one["parameters"].get("on_task_done") for one in document["steps"])


def _described(session: Session) -> tuple[object, ...]:
    columns = ("agent", "model", "task", "title", "window", "outcome", "meta", "policy_version_id")
    more = ("overrides", "policy_from", "parent_external_id", "parent_call")
    return tuple(getattr(session, name) for name in (*columns, *more))


def _describe(session: Session, fields: SessionFields) -> None:
    for name in ("agent", "task", "title", "outcome", "window", "parent_call"):
        value = getattr(fields, name)
        if value is not None:
            setattr(session, name, value)
    if fields.model:
        learn_model(session, fields.model)
    if fields.parent is not None and fields.parent != session.parent_external_id:
        session.parent_external_id, session.parent, session.parent_step = fields.parent, None, None
    if fields.metadata:
        session.meta = {**session.meta, **fields.metadata}


def learn_model(session: Session, model: str) -> None:
    """Set the model of a session, and its window unless one was given.

    Earlier calls without a model get the first one known.
    """
    if not session.model and session.step_count:
        session.calls.filter(model="").update(model=model[:120])
        session.measured = False
        reopen(session, 1)
        tend.ask(session)
    session.model = model[:120]
    session.window = session.window or prices.window(session.model)


def _choose_opening(session: Session, fields: SessionFields) -> None:
    """Set the opening of a session; it cannot change once there are messages."""
    if fields.opening is None and fields.project is None:
        return
    row = Opening.objects.filter(session=session).first() or Opening(session=session, wanted="")
    wanted = row.wanted if fields.opening is None else fields.opening
    fixed = row.wanted or ("" if row.sha else Opening.Wanted.NOTHING)
    if fields.opening is not None and session.message_count and wanted != fixed:
        raise Unacceptable("/opening", "cannot change once there are messages")
    row.wanted = wanted
    row.project = row.project if fields.project is None else fields.project
    row.save()


def _choose_policy(session: Session, fields: SessionFields) -> None:
    """Set the policy of a session: the requested one, else the team's unless it already has one."""
    asked, pinned = fields.asked, session.policy_version_id
    if fields.policy is not None and asked.preset is not None:
        raise Unacceptable(
            "/use_case_preset", "cannot be combined with a policy; send one of the two"
        )
    if session.message_count and pinned is not None and (other := changed(session, asked)):
        raise Unacceptable(f"/{other}", "cannot change once there are messages")
    name = fields.policy or asked.preset
    if name is not None:
        _name_policy(session, name)
    elif pinned is None and session.source == LIVE:
        choose_for_new(session)
    open_still = not session.message_count or pinned is None
    if open_still and (asked or session.policy_version_id != pinned):
        settle(session, asked)


def _name_policy(session: Session, name: str) -> None:
    pinned = session.policy_version_id
    try:
        version = named_version(session.team, name)
    except UnknownPolicy as error:
        raise Unacceptable("/policy", str(error)) from None
    if session.message_count and pinned == version.pk:
        return
    if session.message_count and pinned is not None:
        raise Unacceptable(
            "/policy",
            f"cannot change once there are messages; this session has {session.policy_version}",
        )
    session.policy_version, session.policy_from, session.rollout = version, "request", None


def choose_for_new(session: Session) -> None:
    """Give a session without a requested policy its team's current one."""
    try:
        chosen = policy_for_new(session.team, session.external_id)
    except UnknownPolicy as error:  # from the DEFAULT_POLICY setting
        raise Unacceptable("/policy", str(error)) from None
    session.policy_version, session.policy_from, session.rollout = chosen
    settle(session, RequestedOverrides())


def fix_counting(session: Session) -> None:
    """Fix the token counting of a live session, at its first message."""
    counting = tokens.default_counting(session.model)
    session.token_ratio, session.token_basis = counting.permille, counting.basis
    if counting.encoding != tokens.STORED:
        session.token_basis = Session.Basis.ESTIMATED
