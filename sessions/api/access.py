"""Who asks, and what of their team they may reach: a foreign id looks like a missing one."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest

from sessions.models import Run, Session, Team


def team_of(request: HttpRequest) -> Team:
    """The team of the signed-in person. Raises Http404 for someone without one."""
    team = (
        Team.objects.filter(memberships__user_id=request.user.pk).order_by("created").first()
        if request.user.is_authenticated
        else None
    )
    if team is None:
        raise Http404("no team")
    return team


def session_of(request: HttpRequest, session_id: UUID) -> Session:
    """A session of the asker's team. Raises Http404."""
    found = Session.objects.for_team(team_of(request)).filter(pk=session_id).first()
    if found is None:
        raise Http404("no such session")
    return found


def run_of(request: HttpRequest, session: Session) -> Run:
    """The run that `?run=` names: an id, the name of a policy, or the recorded one.

    Raises Http404.
    """
    wanted = request.GET.get("run") or "recorded"
    runs = session.runs.select_related("policy_version__policy")
    if wanted == "recorded":
        run = runs.filter(origin=Run.Origin.RECORDED).first()
    elif _is_uuid(wanted):
        run = runs.filter(pk=wanted).first()
    else:
        run = (
            runs.filter(origin=Run.Origin.SIMULATED, policy_version__policy__name=wanted)
            .order_by("-policy_version__number")
            .first()
        )
    if run is None:
        raise Http404("no such run")
    return run


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
