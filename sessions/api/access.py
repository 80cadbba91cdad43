"""Who asks, and what of their team they may reach: a foreign id looks like a missing one."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from ninja.utils import check_csrf

from sessions.actions.keys import check_key
from sessions.api.problems import Refusal
from sessions.models import Key, Membership, Run, Session, Team

CHALLENGE = 'Bearer realm="ContextLab"'
SAFE = ("GET", "HEAD", "OPTIONS")
CHOSEN_TEAM = "team"
"""In the browser session, and as `?team=`: the slug of the team whose pages are shown."""
_MAY_WRITE = (Membership.Role.OWNER, Membership.Role.EDITOR)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a request of the API: a program with a key, or a person (`key` is None).

    `teams` are all that may be looked into; what is made is made in the first.
    """

    teams: tuple[Team, ...]
    writes: bool
    key: Key | None = None


class KeyOrPerson:
    """How requests of the API are let in; raises Refusal 401 or 403."""

    openapi_security_schema = {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "clk_…",
        "description": "A key of a team: `contextlab token create --team NAME`.",
    }

    def __call__(self, request: HttpRequest) -> Asker:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        # Other schemes are those of a proxy in front, which knows nothing of our keys.
        known = scheme.lower() == "bearer"
        asker = _with_key(token.strip()) if known else _in_browser(request)
        if request.method not in SAFE and not asker.writes:
            raise Refusal(
                403,
                "Read only",
                "This key may only read. Take one with the scope write."
                if asker.key
                else "Your role in this team may only read. Ask an owner for another.",
            )
        return asker


def _with_key(token: str) -> Asker:
    key = check_key(token)
    if key is None:
        raise Refusal(
            401,
            "No such key",
            "The key is unknown or was revoked. `contextlab token create --team NAME` makes one.",
            headers={"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'},
        )
    return Asker((key.team,), "write" in key.scopes, key)


def _in_browser(request: HttpRequest) -> Asker:
    if not request.user.is_authenticated:
        raise Refusal(
            401,
            "A key is needed",
            "Send `Authorization: Bearer clk_…`; `contextlab token create --team NAME` makes one.",
            headers={"WWW-Authenticate": CHALLENGE},
        )
    if request.method not in SAFE and check_csrf(request) is not None:
        raise Refusal(
            403,
            "From where?",
            "A request with a browser's cookie needs the page's X-CSRFToken. "
            "Reload the page; programs send a key instead.",
        )
    teams = teams_of(request)
    first = next(iter(teams), None)
    writes = bool(first) and _member(request).filter(team=first, role__in=_MAY_WRITE).exists()
    return Asker(tuple(teams), writes)


def _member(request: HttpRequest) -> QuerySet[Membership]:
    return Membership.objects.filter(user=request.user.pk)


def teams_of(request: HttpRequest) -> list[Team]:
    """The asker's teams: that of the key, or all of the person's with the chosen one first."""
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker):
        return list(asker.teams)
    if not request.user.is_authenticated:
        return []
    rows = _member(request).select_related("team").order_by("created")
    chosen = request.GET.get(CHOSEN_TEAM) or request.session.get(CHOSEN_TEAM)
    return sorted((row.team for row in rows), key=lambda team: team.slug != chosen)


def team_of(request: HttpRequest) -> Team:
    """The asker's team: that of the key, or the one whose pages the person looks at.

    `?team=SLUG` chooses another of the person's teams, and stays chosen. Raises Http404 for
    someone without one.
    """
    teams = teams_of(request)
    if not teams:
        raise Http404("no team")
    named = request.GET.get(CHOSEN_TEAM)
    if named == teams[0].slug and not hasattr(request, "auth"):
        request.session[CHOSEN_TEAM] = named
    return teams[0]


def may_write(request: HttpRequest) -> bool:
    """Whether the asker is a program that may write: only such a one is handed a context."""
    asker = getattr(request, "auth", None)
    return isinstance(asker, Asker) and asker.key is not None and asker.writes


def session_of(request: HttpRequest, session_id: UUID | str) -> Session:
    """A session of the asker's teams, by its external id or UUID. Raises Http404."""
    found = find_session(request, str(session_id))
    if found is None:
        raise Http404("no such session")
    return found


def find_session(request: HttpRequest, name: str) -> Session | None:
    """The same, or None where there is none."""
    if "\x00" in name:  # PostgreSQL cannot even be asked
        return None
    for team in teams_of(request):
        rows = Session.objects.for_team(team).select_related("team", "policy_version__policy")
        found = rows.named(name)
        if found is not None:
            return found
    return None


def run_of(request: HttpRequest, session: Session) -> Run:
    """The run that `?run=` names: an id, the name of a policy, the served or the recorded one.

    Raises Http404.
    """
    return run_named(session, request.GET.get("run") or "recorded")


def run_named(session: Session, wanted: str) -> Run:
    """The run of that name. Raises Http404."""
    runs = session.runs.select_related("policy_version__policy").defer(*Run.LARGE)
    if wanted in (Run.Origin.RECORDED, Run.Origin.SERVED):
        run = runs.filter(origin=wanted).first()
    elif _is_uuid(wanted):
        run = runs.filter(pk=wanted).first()
    elif "\x00" in wanted:
        run = None
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
