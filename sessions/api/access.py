"""Who asks, and what of their team they may reach: a foreign id looks like a missing one."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from ninja.utils import check_csrf

from sessions.actions import audit
from sessions.actions.keys import check_key
from sessions.api.problems import Refusal
from sessions.models import Key, Membership, Run, Session, Team
from sessions.models.teams import ROLE_MAY, Right, may

CHALLENGE = 'Bearer realm="ContextLab"'
SAFE = ("GET", "HEAD", "OPTIONS")
CHOSEN_TEAM = "team"
"""In the browser session, and as `?team=`: the slug of the team whose pages are shown."""
_KEYS_MAY: tuple[Right, ...] = ("read", "write")
"""What a program may do at most: it judges nothing, lets nothing out, and lets nobody in."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a request of the API: a program with a key, or a person (`key` is None).

    `teams` are all that may be looked into; what is made is made in the first. What may be done
    in which of them, `require` says.
    """

    teams: tuple[Team, ...]
    key: Key | None = None


class NotAllowed(PermissionDenied):
    """A person whose role in the team lacks the right."""

    def __init__(self, team: Team, right: Right) -> None:
        super().__init__("The role does not include this.")
        self.team, self.right = team, right


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
        if request.method not in SAFE and asker.key and "write" not in asker.key.scopes:
            raise _not_allowed("write", by_key=True)
        return asker


def _not_allowed(right: Right, *, by_key: bool) -> Refusal:
    """403 that names what it takes, and who has that."""
    roles = " or ".join(role for role, rights in ROLE_MAY.items() if right in rights)
    if not by_key:
        text = f"Your role in this team does not include that: it takes {roles}."
        return Refusal(403, "Not allowed", f"{text} An owner gives roles, under Settings, Members.")
    if right in _KEYS_MAY:
        text = f"This key may not do that: it takes one with the scope {right}."
        return Refusal(403, "Not allowed", f"{text} `contextlab token create --team NAME`, or the "
                       "page Settings, Keys, makes one.")  # fmt: skip
    text = "No key may do that, whatever its scopes: only people may, signed in to the pages"
    return Refusal(403, "Not allowed", f"{text}, with the role {roles}.")


def _with_key(token: str) -> Asker:
    key = check_key(token)
    if key is None:
        raise Refusal(
            401,
            "No such key",
            "The key is unknown or was revoked. `contextlab token create --team NAME` makes one.",
            headers={"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'},
        )
    return Asker((key.team,), key)


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
    return Asker(tuple(teams_of(request)))


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
    someone without one, and where something would be done in a team that is none of his.
    """
    teams = teams_of(request)
    if not teams:
        raise Http404("no team")
    named = request.GET.get(CHOSEN_TEAM)
    if named and named != teams[0].slug and request.method not in SAFE:
        raise Http404("no such team")
    if named == teams[0].slug and not hasattr(request, "auth"):
        request.session[CHOSEN_TEAM] = named
    return teams[0]


def allowed(request: HttpRequest, team: Team, right: Right) -> bool:
    """Whether the asker may do that in that team: by the scopes of the key, or by the role."""
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker) and asker.key is not None:
        return asker.key.team_id == team.pk and right in _KEYS_MAY and right in asker.key.scopes
    return may(request.user.pk, team, right)


def require(request: HttpRequest, team: Team, right: Right) -> None:
    """Raises what becomes a 403 where `allowed` says no: Refusal in the API, else NotAllowed."""
    if allowed(request, team, right):
        return
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker):
        raise _not_allowed(right, by_key=asker.key is not None)
    raise NotAllowed(team, right)


def team_to(request: HttpRequest, right: Right) -> Team:
    """The asker's team, for doing that in it. Raises Http404, or what `require` raises."""
    team = team_of(request)
    require(request, team, right)
    return team


def ip_of(request: HttpRequest) -> str:
    """Where a request comes from: behind a proxy what that says last, as only it can."""
    said = request.headers.get("X-Forwarded-For", "") if settings.SECURE_PROXY_SSL_HEADER else ""
    return (said.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR") or "")[:45]


def actor_of(request: HttpRequest) -> audit.Actor:
    """The asker as the audit log names him."""
    ip = ip_of(request)
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker) and asker.key is not None:
        return audit.program(asker.key, ip)
    assert request.user.is_authenticated
    return audit.person(request.user, ip)


def may_write(request: HttpRequest) -> bool:
    """Whether the asker is a program that may write: only such a one is handed a context."""
    asker = getattr(request, "auth", None)
    return isinstance(asker, Asker) and asker.key is not None and "write" in asker.key.scopes


def session_of(request: HttpRequest, session_id: UUID | str, right: Right | None = None) -> Session:
    """A session of the asker's teams, by its external id or UUID. Raises Http404.

    Also asks for the right in the session's own team: `right`, or `write` for requests of the API
    that change something.
    """
    found = find_session(request, str(session_id))
    if found is None:
        raise Http404("no such session")
    if right is None and hasattr(request, "auth") and request.method not in SAFE:
        right = "write"
    if right is not None:
        require(request, found.team, right)
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
    """The run that `?run=` names: an id, a policy (name, name@3), the served or the recorded one.

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
        name, _, number = wanted.partition("@")
        named = runs.filter(origin=Run.Origin.SIMULATED, policy_version__policy__name=name)
        if number:
            wanted_number = int(number) if number.isdecimal() and len(number) < 10 else 0
            named = named.filter(policy_version__number=wanted_number)
        run = named.order_by("-policy_version__number").first()
    if run is None:
        raise Http404("no such run")
    return run


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
