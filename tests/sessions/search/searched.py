"""A session with a forgotten port, and searches for it."""

from __future__ import annotations

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.search import indexing
from sessions.importers import records
from sessions.models import Session, Team
from sessions.models.search.looked_up import Wanted
from sessions.models.search.search import search
from sessions.models.search.search_words import SearchQuery
from tests.sessions.made import count, reads, result, says, session, user


def forgetful(external_id: str = "s1") -> list[records.Record]:
    """A port is read and compacted away; the summary keeps the name of the file."""
    return [
        user("Deploy checkout_api, please.", key=f"{external_id}k0"),
        reads("c1", "t1", "deploy/checkout.env", key="k1"),
        result("t1", 'URL="x"\nPORT=8417 <b>&\nDRAIN=25', key="k2"),
        says("c2", "Read.", key="k3"),
        user("Go on.", key="k4"),
        says("c3", "Going on.", key="k5"),
        records.Compaction("auto", key="compaction", tokens_before=999, tokens_after=99),
        records.Message(
            "user", [{"type": "text", "text": "deploy/checkout.env was read."}],
            key="s", kind="summary",
        ),
        user("And?", key="k6"),
        says("c4", "HttpServer2 failed: 找不到文件", key="k7"),
    ]  # fmt: skip


def store(team: Team | None = None, external_id: str = "s1") -> Session:
    """That session, with the index up to date."""
    team = team or local_team()
    made = append(team, session(*forgetful(), external_id=external_id), count, source="test")
    reindex(team)
    return made.session


def reindex(team: Team) -> None:
    while indexing.index_some(team) + indexing.index_replacements(team):
        pass


def found_blocks(query: str, team: Team | None = None, **wanted: object) -> list[tuple[int, str]]:
    """Messages found, and where each is at the end."""
    rows = Session.objects.filter(team=team or local_team())
    rows = rows.filter(pk=wanted.pop("session")) if "session" in wanted else rows
    asked = Wanted(SearchQuery.of(query), **wanted)  # type: ignore[arg-type]
    found = search([team or local_team()], asked, rows)
    return [(hit.block.message.seq, hit.presence.state) for hit in found.hits]
