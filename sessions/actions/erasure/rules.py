"""What a rule names: the sessions of one id, task, metadata value or text, or of the whole team."""

from __future__ import annotations

from uuid import UUID

from django.db.models import TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from compaction.context.wire import decode
from sessions.actions.erasure.archiving import sessions_with
from sessions.actions.erasure.requests import ErasureRule, NothingToErase
from sessions.actions.erasure.rows import with_sub_agents
from sessions.actions.search.indexing import index_replacements, index_some
from sessions.models import Erasure, Membership, Session, Team
from sessions.models.search.looked_up import Wanted
from sessions.models.search.search import search
from sessions.models.search.search_words import SearchQuery, searched_text

Kind = Erasure.Kind


def sessions_of(team: Team, rule: ErasureRule) -> list[UUID]:
    """The sessions that a rule names, with their sub-agents. Raises NothingToErase."""
    return with_sub_agents(team, _FINDERS[rule.kind](team, rule.value))


def _session(team: Team, value: str) -> list[UUID]:
    found = Session.objects.named_in(team, value)
    if found is None or found.erasing is not None:
        raise NothingToErase(f"There is no session {value!r} in this team. Check the id.")
    return [found.pk]


def _task(team: Team, value: str) -> list[UUID]:
    if not value:
        raise NothingToErase("The task has no name. Name one.")
    return list(Session.objects.for_team(team).filter(task=value).values_list("pk", flat=True))


def _metadata(team: Team, value: str) -> list[UUID]:
    name, is_pair, wanted = value.partition("=")
    if not is_pair or not name:
        raise NothingToErase("Metadata is named as KEY=VALUE, such as user=4711.")
    said = Cast(KeyTextTransform(name, "meta"), TextField())
    rows = Session.objects.for_team(team).annotate(said=said).filter(said=wanted)
    return list(rows.values_list("pk", flat=True))


def _text(team: Team, value: str) -> list[UUID]:
    """Sessions with a block or replacement that contains the text, upper or lower case."""
    # What came in the last seconds is not in the index yet.
    while index_some(team) + index_replacements(team):
        pass
    wanted = Wanted(SearchQuery.of('"{}"'.format(value.replace('"', " "))))
    if not wanted.query.words:
        raise NothingToErase("The text has no word to search for. Use a whole word at least.")
    found: dict[UUID, None] = {}
    after: int | None = None
    while True:
        rows = Session.objects.for_team(team).filter(erasing=None)
        page = search([team], wanted, rows, after=after, each=1)
        found |= dict.fromkeys(hit.session.pk for hit in page.hits)
        after = page.after
        if after is None:
            break
    archived = sessions_with(team, lambda data: wanted.query.matches(searched_text(decode(data))))
    return list(found | dict.fromkeys(archived))


def _member(team: Team, value: str) -> list[UUID]:
    if not Membership.objects.filter(team=team, user__username=value).exists():
        raise NothingToErase(f"There is no member {value!r} in this team. Check the name.")
    return []


def _team(team: Team, value: str) -> list[UUID]:
    if value != team.slug:
        raise NothingToErase(f"The team's slug is {team.slug!r}. Give exactly that.")
    return list(Session.objects.for_team(team).values_list("pk", flat=True))


_FINDERS = {
    Kind.SESSION: _session,
    Kind.TASK: _task,
    Kind.METADATA: _metadata,
    Kind.TEXT: _text,
    Kind.MEMBER: _member,
    Kind.TEAM: _team,
}
