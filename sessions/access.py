"""Access control: who asks, and what they may reach. Other teams' ids look like missing ones."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import LOCAL_TEAM
from sessions.actions.archives.unpack import opened
from sessions.actions.record.erased import refuse_named
from sessions.actions.reviews.losses import seen_run
from sessions.models import Key, Membership, Run, Session, Team
from sessions.models.accounts.teams import Right
from sessions.models.erasure.kept import SessionErased
from sessions.models.web.statements import Statement, given_int, given_text, given_uuid

SAFE = ("GET", "HEAD", "OPTIONS")
API = "/api/v1/"
CHOSEN_TEAM = "team"
"""Key in the browser session and name of the query parameter: slug of the team shown."""
KEYS_MAY: tuple[Right, ...] = ("read", "write", "erase")
"""Rights that a program's key can have at most; it cannot review, start rollouts or manage
members."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The sender of an API request: a program with a key, or a person (`key` is None).

    `teams` are all teams it may read; new objects belong to the first. `require` checks what it may
    do in each.
    """

    teams: tuple[Team, ...]
    key: Key | None = None


class NotAllowed(PermissionDenied):
    """Raised if the requester lacks a right in the team, by role or by a key's scopes
    (`by_key`)."""

    def __init__(self, team: Team, right: Right, *, by_key: bool = False) -> None:
        super().__init__(
            "The role or key does not include this right. Ask an owner of the team for it."
        )
        self.team, self.right, self.by_key = team, right, by_key


def by_key(request: HttpRequest) -> bool:
    """Whether this is an API request that says it has a key, valid or not; other schemes belong to
    a proxy in front."""
    scheme = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")[0]
    return bool(request.path_info.startswith(API) and scheme.lower() == "bearer")


_MEMBERSHIPS = Statement(
    lambda: (
        Membership.objects.filter(user_id=given_int("user"))
        .select_related("team")
        .order_by("created")
    )
)


def _memberships(request: HttpRequest) -> list[Membership]:
    """The person's memberships, read once per request."""
    if not hasattr(request, "memberships"):
        request.memberships = _MEMBERSHIPS.rows(user=request.user.pk)  # type: ignore[attr-defined]
    return request.memberships  # type: ignore[attr-defined]


def teams_of(request: HttpRequest) -> list[Team]:
    """The requester's teams: the key's team, or all of the person's, the selected one first."""
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker):
        return list(asker.teams)
    if not request.user.is_authenticated:
        return []
    rows = _memberships(request)
    chosen = request.GET.get(CHOSEN_TEAM) or request.session.get(CHOSEN_TEAM)
    return sorted((row.team for row in rows), key=lambda team: team.slug != chosen)


def team_of(request: HttpRequest) -> Team:
    """The requester's team: the key's team, or the one whose pages the person has open.

    `?team=SLUG` selects another of the person's teams and is remembered. Raises Http404 without a
    team, and for unsafe requests that name a team the person is not in.
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
    """Check whether the requester has a right in a team, by the key's scopes or the person's
    role."""
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker) and asker.key is not None:
        key = asker.key
        return key.team_id == team.pk and right in KEYS_MAY and right in key.valid_scopes
    rows = _memberships(request)
    return any(row.team_id == team.pk and row.may(right) for row in rows)


def require(request: HttpRequest, team: Team, right: Right) -> None:
    """Raise NotAllowed (a 403) unless the requester has the right."""
    if allowed(request, team, right):
        return
    asker = getattr(request, "auth", None)
    raise NotAllowed(team, right, by_key=isinstance(asker, Asker) and asker.key is not None)


def team_to(request: HttpRequest, right: Right) -> Team:
    """The requester's team, checked for a right. Raises Http404 and what `require` raises."""
    team = team_of(request)
    require(request, team, right)
    return team


def operates(request: HttpRequest) -> bool:
    """Whether the person runs this server: a superuser, or an owner of the local team."""
    if not request.user.is_authenticated:
        return False
    return request.user.is_superuser or any(
        row.team.slug == LOCAL_TEAM and row.role == Membership.Role.OWNER
        for row in _memberships(request)
    )


def require_operator(request: HttpRequest) -> None:
    """Raise Http404 unless the person runs this server."""
    if not operates(request):
        raise Http404("not an operator")


def ip_of(request: HttpRequest) -> str:
    """The client's address; behind a proxy the last entry of X-Forwarded-For, the only one it
    vouches for."""
    said = request.headers.get("X-Forwarded-For", "") if settings.SECURE_PROXY_SSL_HEADER else ""
    return (said.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR") or "")[:45]


def actor_of(request: HttpRequest) -> audit.Actor:
    """The requester as an actor for the audit log."""
    ip = ip_of(request)
    asker = getattr(request, "auth", None)
    if isinstance(asker, Asker) and asker.key is not None:
        return audit.program(asker.key, ip)
    assert request.user.is_authenticated
    return audit.person(request.user, ip)


def note_refused(request: HttpRequest, refusal: NotAllowed) -> None:
    """Note in the audit log that a right was missing; after the request's transaction."""
    audit.note_refusal(refusal.team, actor_of(request), _asked(request), right=refusal.right)


def note_missed(request: HttpRequest) -> None:
    """Note in the log of a person's own team that they asked for a session by an id that none of
    their teams has.

    A missing session and one of another team are noted alike: the entry does not tell which it was.
    """
    missed = getattr(request, "missed_session", "")
    if missed and not by_key(request) and (teams := teams_of(request)):
        audit.note_refusal(teams[0], actor_of(request), missed, operation=_asked(request))


def _asked(request: HttpRequest) -> str:
    """The page or operation that was asked for; the URL itself may have an agent's words."""
    match = request.resolver_match
    return f"{request.method} {match.view_name if match else ''}".strip()


def may_write(request: HttpRequest) -> bool:
    """Whether the requester is a program with write scope; only those receive managed contexts."""
    asker = getattr(request, "auth", None)
    return isinstance(asker, Asker) and asker.key is not None and "write" in asker.key.scopes


def session_of(
    request: HttpRequest,
    session_id: UUID | str,
    right: Right | None = None,
    *,
    packed: bool = False,
) -> Session:
    """A session of the requester's teams, by external id or UUID; an archived one is unpacked,
    unless it may be `packed`. Raises Http404.

    Also requires a right in the session's team: `right`, or `write` for API requests that change
    something.
    """
    found = find_session(request, str(session_id), packed=packed)
    if found is None:
        raise Http404("no such session")
    if right is None and hasattr(request, "auth") and request.method not in SAFE:
        right = "write"
    if right is not None:
        require(request, found.team, right)
    return found


def find_session(request: HttpRequest, name: str, *, packed: bool = False) -> Session | None:
    """A session of the requester's teams, by external id or UUID, or None. An archived one is
    unpacked, unless it may be `packed`. Raises SessionErased, Unpacking."""
    if "\x00" in name:  # PostgreSQL rejects NUL characters
        return None
    for team in teams_of(request):
        found = Session.objects.named_in(team, name)
        if found is not None:
            # api/ingestion counts what it was sent.
            request.found_session = found  # type: ignore[attr-defined]
            if found.erasing is not None:
                raise SessionErased(done=False)
            if not packed:
                opened(found)
            return found
    refuse_named(teams_of(request), name)
    if _is_uuid(name):
        request.missed_session = name  # type: ignore[attr-defined]
    return None


def run_of(request: HttpRequest, session: Session) -> Run:
    """The run named by `?run=`: an id, a policy (name, name@3), or an origin. Raises Http404."""
    return run_named(session, request.GET.get("run") or "recorded")


SEEN = "seen"
"""Names the run whose contexts the model saw: the managed one if there is one."""


def run_named(session: Session, wanted: str) -> Run:
    """The run with that name. Raises Http404."""
    if wanted == SEEN:
        run = seen_run(session)
    elif wanted in (Run.Origin.RECORDED, Run.Origin.MANAGED):
        run = _OF_ORIGIN.first(session=session.pk, origin=wanted)
    else:
        run = _other_run(session, wanted)
    if run is None:
        raise Http404("no such run")
    return run.of_session(session)


def _other_run(session: Session, wanted: str) -> Run | None:
    """The run with that id, or the newest of a policy."""
    if "\x00" in wanted:  # PostgreSQL rejects NUL characters
        return None
    runs = session.runs.select_related("policy_version__policy").defer(*Run.LARGE)
    if _is_uuid(wanted):
        return runs.filter(pk=wanted).first()
    name, _, number = wanted.partition("@")
    named = runs.filter(origin=Run.Origin.SIMULATED, policy_version__policy__name=name)
    if number:
        wanted_number = int(number) if number.isdecimal() and len(number) < 10 else 0
        named = named.filter(policy_version__number=wanted_number)
    return named.order_by("-policy_version__number").first()


_OF_ORIGIN = Statement(
    lambda: (
        Run.objects.select_related("policy_version__policy")
        .defer(*Run.LARGE)
        .filter(session_id=given_uuid("session"), origin=given_text("origin"))
    )
)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
