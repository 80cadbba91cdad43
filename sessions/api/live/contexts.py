"""The managed context that a live agent sends to its model."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from sessions.access import may_write, session_of
from sessions.actions.live.managed import (
    LONGEST_WAIT,
    NoSuchStep,
    Plan,
    next_plan,
    plan_again,
    plan_at,
    plan_of,
)
from sessions.actions.live.requests.pausing import refuse_paused
from sessions.actions.live.retries import NothingFailed
from sessions.api.budgets.shapes import OverBudgetOut
from sessions.api.live import shapes
from sessions.api.live.handing_out import Form, Format, NoRoom, context_answer, hand_out
from sessions.api.web.problems import Refusal, problem
from sessions.api.web.shapes import Problem
from sessions.models import ManagedContext, Session
from sessions.models.web.shown import as_stored

router = Router(tags=["Context"])


@router.get(
    "sessions/{path:session_id}/context",
    response={200: shapes.ContextOut, 402: OverBudgetOut, 423: Problem},
    url_name="context",
)
def context(
    request: HttpRequest,
    session_id: str,
    which: Query[shapes.ContextIn],
    format: Format = Query("anthropic", description="provider format"),
    wait: float = Query(
        0, ge=0, le=LONGEST_WAIT, description="seconds to wait for a summary in progress"
    ),
    breakpoints: bool = Query(True, description="place cache_control (Anthropic's form only)"),
    since: str = Query(
        "",
        max_length=40,
        description="id of an earlier context that you still have: only what changed is sent",
    ),
) -> HttpResponse:
    """Get the context to send to the model now: `system`, `tools` and `messages`, ready to use.

    If the policy edits, `read_back` is the last of the tools, from the first step on: answer its
    calls with `GET …/content/{ref}`. With a tool graph, the other `tools` are those of the step,
    and `tool_choice` is set if the provider supports a mask; `toolset` says which tools are listed
    and allowed. Report `context_id` with the usage of the call. Requesters without write access get
    a `context_id` of null: the context is not recorded as sent. 402 if a hard budget, or one that
    needs approval, has no room for the prompt and the expected output; the problem has the fields
    of a budget check. 423 while a person has paused the session; `Retry-After` says when to ask
    again.
    """
    session = session_of(request, session_id)
    managed = _managed(session, which.context_id) if which.context_id else None
    goes_out = managed is None and which.at is None
    if goes_out and may_write(request):
        refuse_paused(session)
    form = Form(format, breakpoints, since, which.read_back, which.offloads)
    with as_stored():  # this process keeps parts of it for the agent
        plan = plan_of(managed) if managed is not None else _plan(session, which, wait)
        try:
            fields = hand_out(request, plan, form, managed=managed, goes_out=goes_out)
        except NoRoom as error:
            return over_budget(error)
    return context_answer(fields)


def over_budget(error: NoRoom, **more: Any) -> HttpResponse:
    """A 402 response, which clients do not retry automatically, because waiting alone does not
    help."""
    names = ("require_approval", "approval", "budgets")
    rest = {name: error.answer[name] for name in names}
    return problem(402, "Over budget", str(error), **rest, **more)


def _managed(session: Session, context_id: str) -> ManagedContext:
    rows = ManagedContext.objects.select_related("run__session", "tools__session")
    found = (
        None if "\x00" in context_id else rows.filter(run__session=session, pk=context_id).first()
    )
    if found is None:
        raise Http404("no such context")
    return found


def _plan(session: Session, which: shapes.ContextIn, wait: float) -> Plan:
    field = "?retry_of" if which.retry_of is not None else "?at"
    if which.at is not None and which.retry_of is not None:
        detail = "Send either `at` or `retry_of`, not both."
        raise Refusal(422, "Ambiguous context", detail, field=field)
    try:
        if which.retry_of is not None:
            return plan_again(session, which.retry_of)
        return next_plan(session, wait=wait) if which.at is None else plan_at(session, which.at)
    except NothingFailed as error:
        raise Refusal(422, "Nothing failed", str(error), field=field) from None
    except NoSuchStep as error:
        raise Refusal(422, "No such step", str(error), field=field) from None
