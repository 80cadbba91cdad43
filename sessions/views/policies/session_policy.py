"""The effective settings of a session, each with its source."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from sessions.access import session_of
from sessions.models.policies.policy_documents import base_name, effective
from sessions.views.web.pages import Page


@require_GET
def session_policy(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show a session's settings."""
    session = session_of(request, session_id)
    version = session.policy_version
    values = effective(session)
    return render(
        request,
        "policies/effective.html",
        {
            "section": "sessions",
            "session": session,
            "version": version,
            "based_on": base_name(version) if version is not None else "",
            "values": values,
            "changed": sum(one.overrides for one in values),
        },
    )


PAGES = (
    Page(route="sessions/<uuid:session_id>/policy/", view=session_policy, name="session_policy"),
)
