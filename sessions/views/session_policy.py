"""What one session runs under, value by value, and who decided each."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from sessions.api.access import session_of
from sessions.models.policy_documents import base_name, effective


@require_GET
def session_policy(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The page of a session's policy."""
    session = session_of(request, session_id)
    version = session.policy_version
    values = effective(session)
    return render(
        request,
        "sessions/effective.html",
        {
            "session": session,
            "version": version,
            "based_on": base_name(version) if version is not None else "",
            "values": values,
            "changed": sum(one.overrides for one in values),
        },
    )
