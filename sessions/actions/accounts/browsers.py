"""The browsers in which a person is signed in: listed, and signed out from another one."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from allauth.usersessions.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from sessions.actions.accounts import audit

SEEN = "seen"
"""Key in the browser session: when its row was last written, in seconds."""
SEEN_EVERY = timedelta(minutes=10)
_CHARS = 200
_NAMES = (
    (("Edg",), "Edge"), (("OPR/", "Opera"), "Opera"), (("Firefox/", "FxiOS/"), "Firefox"),
    (("Chrom", "CriOS/"), "Chrome"), (("Safari/",), "Safari"),
)  # fmt: skip
_SYSTEMS = (
    (("iPhone", "iPad"), "iOS"), (("Android",), "Android"), (("Windows",), "Windows"),
    (("Mac OS X", "Macintosh"), "macOS"), (("CrOS",), "ChromeOS"), (("Linux", "X11"), "Linux"),
)  # fmt: skip


def note_browser(request: HttpRequest, user: User, ip: str) -> None:
    """Write down where and when a person was last seen in this browser."""
    now = timezone.now()
    request.session[SEEN] = int(now.timestamp())
    if request.session.session_key is None:
        request.session.save()
    UserSession.objects.update_or_create(
        session_key=request.session.session_key,
        defaults={
            "user": user,
            "ip": ip,
            "user_agent": request.META.get("HTTP_USER_AGENT", "")[:_CHARS],
            "last_seen_at": now,
        },
    )


def is_stale(request: HttpRequest) -> bool:
    """Whether `note_browser` is due."""
    seen = request.session.get(SEEN, 0)
    return bool(timezone.now().timestamp() - seen > SEEN_EVERY.total_seconds())


def browsers_of(user: User, current: str | None) -> list[dict[str, Any]]:
    """The browsers in which a person is signed in, the last seen first; `current` is the session
    key of this one."""
    rows = sorted(UserSession.objects.purge_and_list(user), key=lambda one: one.last_seen_at)
    return [
        {
            "row": row,
            "name": browser_name(row.user_agent),
            # The network of ::1 is ::, which says nothing of where a browser is.
            "address": "" if ip_address(row.ip).is_unspecified else row.ip,
            "current": row.session_key == current,
        }
        for row in reversed(rows)
    ]


@transaction.atomic
def sign_out(user: User, browser: int, actor: audit.Actor) -> bool:
    """Sign out one browser of a person, by primary key; pages open there close within seconds.
    Returns False if it had ended."""
    row = UserSession.objects.filter(user=user, pk=browser).first()
    if row is None:
        return False
    name = browser_name(row.user_agent)
    get_adapter().end_sessions([row])
    audit.note_for(user, actor, "browser.ended", user, browser=name, of=row.ip)
    return True


@transaction.atomic
def sign_out_others(user: User, current: str | None, actor: audit.Actor) -> int:
    """Sign out all browsers of a person but this one, listed or not; return how many."""
    if ended := end_sessions(user, current):
        audit.note_for(user, actor, "browser.ended", user, others=ended)
    return ended


def end_sessions(user: User, but: str | None = None) -> int:
    """End all browser sessions of a person, listed or not, but the one with this key; return how
    many."""
    UserSession.objects.filter(user=user).exclude(session_key=but).delete()
    alive = BrowserSession.objects.filter(expire_date__gt=timezone.now()).exclude(pk=but)
    rows = alive.iterator(500)
    theirs = [row.pk for row in rows if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
    BrowserSession.objects.filter(pk__in=theirs).delete()
    return len(theirs)


def browser_name(user_agent: str) -> str:
    """Browser and system as people call them: "Firefox on Linux"."""
    name, system = (
        next((name for signs, name in known if any(one in user_agent for one in signs)), "")
        for known in (_NAMES, _SYSTEMS)
    )
    name = name or "Other browser"
    return f"{name} on {system}" if system else name
