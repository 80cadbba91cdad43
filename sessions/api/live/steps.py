"""A whole step of an agent in one request: report the last answer, append, get the next context."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from compaction.render.paths import FOLDER, LONGEST_FOLDER
from sessions.access import find_session, require
from sessions.actions.live.deliver import AnotherRequest, Batch, deliver, delivery, wait_for_disk
from sessions.actions.live.managed import LONGEST_WAIT, next_plan
from sessions.api.budgets.shapes import OverBudgetOut
from sessions.api.live import shapes
from sessions.api.live.contexts import over_budget
from sessions.api.live.handing_out import Form, Format, NoRoom, context_answer, hand_out
from sessions.api.live.messages import MADE, begun
from sessions.api.live.pausing import PausedOut, paused
from sessions.api.web.exchange import value_of
from sessions.api.web.once import another_request, once_of
from sessions.models import Session
from sessions.models.web.synced import synced_later

router = Router(tags=["Context"])


class StepIn(shapes.MessagesIn):
    """The messages since the last step, and how the next context is wanted."""

    format: Format = Field("anthropic", description="provider format")
    breakpoints: bool = Field(True, description="place cache_control (Anthropic's form only)")
    since: str = Field(
        "",
        max_length=40,
        description="id of the last context, if you still have it: only what changed is sent",
    )
    wait: float = Field(
        0, ge=0, le=LONGEST_WAIT, description="seconds to wait for a summary in progress"
    )
    read_back: bool = Field(True, description="list the tool `read_back` if the policy edits")
    offloads: str = Field(
        "",
        max_length=LONGEST_FOLDER,
        pattern=FOLDER,
        description="folder where you keep offloads as files; paths in it replace references",
    )


class StepOut(shapes.ContextOut):
    """The context to send, and what the append did; `appended` is null without messages."""

    appended: shapes.DeliveredOut | None


class StepOverBudgetOut(OverBudgetOut):
    """A budget check that refuses the call, and what the append did."""

    appended: shapes.DeliveredOut | None


_OURS = set(StepIn.model_fields) - set(shapes.MessagesIn.model_fields)


@router.post(
    "sessions/{path:session_id}/steps",
    response={200: StepOut, 201: StepOut, 402: StepOverBudgetOut, 423: PausedOut},
    url_name="steps",
)
def steps(request: HttpRequest, session_id: str, wanted: StepIn) -> HttpResponse:
    """Append the messages of a step, and get the next context, with the usage of its call.

    The same as an append followed by `GET …/context`, in one request. With `since`, `keep` says
    how many messages of that context come first, and `messages` are those after them; `system`
    and `tools` are null if they did not change. 402 and 423 as for `GET …/context`; what was sent
    is stored. 201 if the session is new.
    """
    body = value_of(request)
    given = {k: v for k, v in body.items() if k not in _OURS} if isinstance(body, dict) else body
    batch = delivery(given) if _says_something(given) else None
    session, created = find_session(request, session_id), False
    if session is not None:
        require(request, session.team, "write")
    elif batch is None:
        raise Http404("no such session")
    else:
        session, created = begun(request, session_id)
    if session.paused is not None:
        appended, _ = _appended(request, session, batch, created=created)
        return paused(session, appended=appended)
    # Recording the context is the last commit, and waits for the disk.
    with synced_later():
        appended, session = _appended(request, session, batch, created=created)
        plan = next_plan(session, wait=wanted.wait)
    form = Form(wanted.format, wanted.breakpoints, wanted.since, wanted.read_back, wanted.offloads)
    try:
        fields = hand_out(request, plan, form)
    except NoRoom as error:
        wait_for_disk(session)
        return over_budget(error, appended=appended)
    return context_answer({"appended": appended, **fields}, 201 if created else 200)


def _appended(
    request: HttpRequest, session: Session, batch: Batch | None, *, created: bool
) -> tuple[dict[str, Any] | None, Session]:
    """What the append did, and the session as it is now."""
    if batch is None:
        return None, session
    try:
        done = deliver(session, batch, once=once_of(request), notes=[MADE] if created else [])
    except AnotherRequest as error:
        raise another_request(error) from None
    return done.answer, done.session


def _says_something(given: Any) -> bool:
    if not isinstance(given, dict):
        return True  # and wrong
    return any(given.get(name) is not None for name in ("messages", "tools", "system"))
