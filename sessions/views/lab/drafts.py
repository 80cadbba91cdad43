"""The exact simulation behind the lab's sliders, streamed as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_POST

from compaction.policies.fields import fields
from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from sessions.access import team_to
from sessions.actions.lab.choices import NoChoice, chosen_sessions, read_choice
from sessions.actions.lab.simulations import small_first
from sessions.actions.lab.warm import stream
from sessions.actions.policies.bounds import defaults
from sessions.actions.policies.policies import active_version
from sessions.models import Session, Team
from sessions.models.policies.rollouts import under_way
from sessions.models.web.shown import value, view
from sessions.views.web.pages import Page

MOST_SESSIONS = 60
MOST_STEPS = 24_000
"""What a slider moves at once; a run takes more."""
MOST_EFFECTS = 12
"""Changed settings whose own effect is simulated."""
BESIDE = ("balanced", "balanced-lean", "offload-first", "recitation", "sliding-window")
"""Presets that the picture shows beside the draft."""
LONGEST = 200_000
"""Bytes of a request."""


class _Refused(Exception):
    """Why a draft cannot be simulated: a title and what to do."""


@require_POST
def figures(request: HttpRequest) -> HttpResponseBase:
    """Simulate a draft on chosen sessions: {page, sessions: a choice, document}.

    Answers with lines: {kind: "sessions", sessions, left_out, active}, then those of
    `sessions.actions.lab.draft_figures`. `page` is any text that names the open page: its newer
    request ends an older one. Stores nothing.
    """
    team = team_to(request, "read")
    try:
        page, chosen, left_out, asked = _asked(team, request.body)
    except _Refused as refused:
        title, detail = refused.args
        return JsonResponse({"title": title, "detail": detail}, status=422)
    head = {
        "kind": "sessions",
        "sessions": [
            {"id": str(one.pk), "title": str(one), "steps": one.step_count} for one in chosen
        ],
        "left_out": left_out,
        "active": asked["active"],
    }
    lines = StreamingHttpResponse(
        _lines(team, page, head, asked), content_type="application/x-ndjson"
    )
    lines["Cache-Control"] = "no-store"
    lines["X-Accel-Buffering"] = "no"
    return lines


def _lines(
    team: Team, page: str, head: Mapping[str, Any], asked: Mapping[str, Any]
) -> Iterator[bytes]:
    yield json.dumps(head).encode() + b"\n"
    if asked["sessions"]:
        for line in stream(team.pk, page, asked):
            # Its worker reads content as it is stored.
            yield line if view() is None else json.dumps(value(json.loads(line))).encode() + b"\n"


def _asked(team: Team, body: bytes) -> tuple[str, list[Session], int, dict[str, Any]]:
    """The page, the sessions, how many of the choice are left out, and the worker's request."""
    try:
        given = json.loads(body) if len(body) <= LONGEST else None
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not isinstance(given.get("document"), dict):
        raise _Refused("Invalid request", "Send a JSON object with a document.")
    try:
        draft = from_dict(given["document"])
        choice = given.get("sessions")
        read = read_choice(choice if isinstance(choice, dict) else {})
        chosen = chosen_sessions(team, read, empty=True)
    except InvalidPolicy as error:
        raise _Refused("Invalid setting", f"{error}.") from None
    except NoChoice as error:
        raise _Refused("No sessions chosen", f"{error}".rstrip(".") + ".") from None
    active = active_version(team)
    baseline = from_dict(active.document)
    shown = _within_limits(chosen)
    rollout = under_way(team)
    return (
        str(given.get("page", ""))[:60],
        shown,
        len(chosen) - len(shown),
        {
            "sessions": [str(one.pk) for one in small_first(shown)],
            "active": str(active),
            "policies": {"draft": to_dict(draft), "active": to_dict(baseline)},
            "effects": _effects(draft, baseline),
            "points": {name: to_dict(PRESETS[name]) for name in BESIDE},
            "guardrail": rollout.guardrail if rollout else defaults(),
        },
    )


def _effects(draft: Policy, active: Policy) -> dict[str, Any]:
    """For each setting that differs, the active policy with that change alone; empty if the steps
    differ."""
    before = {one.path: one.value for one in fields(active)}
    after = {one.path: one.value for one in fields(draft)}
    changed = [path for path in after if before.get(path) != after[path]]
    if before.keys() != after.keys() or len(changed) > MOST_EFFECTS:
        return {}
    made: dict[str, Any] = {}
    for path in changed:
        document = to_dict(active)
        _put(document, path, after[path])
        try:
            made[path] = to_dict(from_dict(document))
        except InvalidPolicy:  # it is valid only together with another change
            continue
    return made


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set a value by its path: "ttl", "steps[2].parameters.age"."""
    place: Any = document
    *parts, last = path.replace("[", ".").replace("]", "").split(".")
    for part in parts:
        place = place[int(part)] if part.isdecimal() else place[part]
    place[last] = value


def _within_limits(chosen: Sequence[Session]) -> list[Session]:
    shown: list[Session] = []
    steps = 0
    for session in chosen:
        if len(shown) < MOST_SESSIONS and steps + session.step_count <= MOST_STEPS:
            shown.append(session)
            steps += session.step_count
    return shown


PAGES = (Page(route="lab/figures/", view=figures, name="lab_figures", needs={"POST": "read"}),)
