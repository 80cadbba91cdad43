"""The revision page: before, after, removed entries, replacements, and after-effects."""

from __future__ import annotations

import json
import re
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import call_command
from django.test import Client

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.reviews import losses
from sessions.actions.reviews.fact_ledgers import keep_ledger
from sessions.importers import records
from sessions.models import Revision, Session
from sessions.views.reviews.sections import LONG, SummarySection, sections
from tests.sessions.made import count, reading, reads, result, says, session, user
from tests.sessions.pages import Page, other_team, page_of, signed_in

pytestmark = pytest.mark.django_db

NUMBERED = """This session is being continued.

1. Primary Request and Intent:
   - Read the files.
2. Key Technical Concepts:
   - 1. not a heading
3. **Files and Code Sections**:
   f1.py
"""


@pytest.fixture
def client() -> Client:
    return signed_in()


def compacted(*after: records.Record, summary: str = "So far.") -> list[records.Record]:
    """Two files read, all of it compacted, then the given messages."""
    made = reading(2).records
    made.append(records.Compaction("auto", key="compaction", tokens_before=999, tokens_after=99))
    made.append(
        records.Message("user", [{"type": "text", "text": summary}], key="s", kind="summary")
    )
    return [*made, *after]


def stored(made: list[records.Record], external_id: str = "s1") -> Session:
    found = append(
        local_team(), session(*made, external_id=external_id), count, source="test"
    ).session
    measure(found)
    found.refresh_from_db()
    return found


def shown(client: Client, of: Session, run: str = "recorded", number: int = 1) -> Page:
    return page_of(client, f"/sessions/{of.pk}/revisions/{run}/{number}/")


def usage(call: str, uncached: int, read: int = 0) -> records.Call:
    return records.Call(call, usage=Usage(uncached, read, 0, 0, 1, 0))


def test_a_compaction_says_what_it_did(client: Client):
    found = stored(compacted(says("c3", "on it", key="z")))
    page = shown(client, found)
    assert "Compaction · step 2 → 3" in page.text
    assert page.title.startswith("Compaction step 3 · Please read the files.")
    assert "recorded" in page.classes
    assert "999 → 99" in page.text, "the log's own counts"
    assert "automatic compaction" in page.text
    assert '<dt>Cache break</dt><dd><span class="muted">unknown' in page.markup
    assert page.links["Replay before"] == f"/sessions/{found.pk}/steps/2/"
    assert page.links["Replay after"] == f"/sessions/{found.pk}/steps/3/"
    assert page.links["Diff step 2 → 3"] == f"/sessions/{found.pk}/diff/2..3/"
    assert "So far." in page.text


def test_all_that_went_is_counted_and_leads_to_where_it_last_stood(client: Client):
    found = stored(compacted(says("c3", "on it", key="z")))
    page = shown(client, found)
    assert page.links["#1"] == f"/sessions/{found.pk}/steps/2/?m=1"
    assert page.links["#5"] == f"/sessions/{found.pk}/steps/2/?m=5"
    assert "#6" not in page.links, "the summary came, it did not go"
    assert "Taken out 5" in page.text
    assert "Together" in page.text
    cells = re.findall(
        r'<td class="number"[^>]*>(?:<span class="(.*?)">)?[−+]?[\d.]+k?<', page.markup
    )
    assert cells.count("estimated") > 9, "our counts are marked in tables too"


def test_prompts_that_the_provider_reported_come_before_what_logs_state(client: Client):
    made = compacted(says("c3", "on it", key="z"))
    page = shown(client, stored([*made, usage("c2", 10, 5_000), usage("c3", 10, 900)]))
    assert '5,010 tokens, prompts reported by the provider for steps 2 and 3">5.0k' in page.markup
    assert "−82 %" in page.text
    assert "900 read from the cache, 0 written, 10 uncached" in page.text
    assert "The log states" in page.text


@pytest.mark.parametrize(
    ("reported", "before", "after"), [(True, "5.0k", 910), (False, "999", 99 + 40)]
)
def test_the_measures_are_of_the_sizes_at_the_top(
    client: Client, reported: bool, before: str, after: int
):
    made = compacted(says("c3", "on it", key="z"))
    found = stored([*made, *([usage("c2", 10, 5_000), usage("c3", 10, 900)] if reported else [])])
    Session.objects.filter(pk=found.pk).update(hidden_tokens=40)
    found.refresh_from_db()
    assert keep_ledger(found, Revision.objects.get(run__session=found)) is not None
    page = shown(client, found)
    assert f"{before} → {after}" in page.text
    assert f"({after} of {'5,010' if reported else '999'})" in page.text


def test_one_reported_prompt_alone_makes_no_difference_of_two(client: Client):
    made = compacted(says("c3", "on it", key="z"))
    page = shown(client, stored([*made, usage("c2", 10, 5_000)]))
    assert "as stated in the log" in page.html


@pytest.mark.parametrize(("off", "marked"), [(0, False), (40, False), (60, True), (-60, True)])
def test_our_count_is_marked_where_the_provider_disagrees(client: Client, off: int, marked: bool):
    made = compacted(says("c3", "on it", key="z"))
    found = stored([*made, usage("c2", 1_000), usage("c3", 200)])
    visible = sum(found.scaled(block.tokens) for block in found.blocks.filter(born__lte=2))
    Session.objects.filter(pk=found.pk).update(hidden_tokens=1_000 - visible + off)
    text = shown(client, found).text
    said = (
        "had left before, unstated"
        if off > 0
        else "60 tokens smaller, so these figures are estimates."
    )
    assert (said in " ".join(text.split())) == marked


def test_a_compaction_that_ends_the_log_has_nothing_after_it(client: Client):
    page = shown(client, stored(compacted()))
    assert "no model call came after it" in page.text
    assert page.links["Replay after"].endswith("/steps/2/"), "there is no later step to show"
    assert "no calls came after it" in page.text


def test_cleared_results_are_shown_beside_their_stubs(client: Client):
    made = [*reading(2).records, records.Clear(("t1",), key="x"), says("c3", "ok", key="z")]
    page = shown(client, stored(made))
    assert "Clearing · step 2 → 3" in page.text
    assert "Original → stub 1" in page.text
    assert page.links["#3"].endswith("/steps/2/?m=3")
    assert "cleared tool results" in page.text
    assert "Taken out 5" not in page.text


def test_a_rewind_has_no_after_effects(client: Client):
    made = [*reading(2).records, records.Rewind(("k2a", "k2b"), key="x"), says("c3", "ok", key="z")]
    page = shown(client, stored(made))
    assert "Rewind" in page.text
    assert "After-effects" not in page.text


def test_two_revisions_of_one_step_share_its_sizes_and_say_so(client: Client):
    made = compacted(user("And now?", key="u"), says("c3", "ok", key="z"))
    made.insert(-4, records.Rewind(("k2a", "k2b"), key="x"))
    of = stored(made)
    for number, other in ((1, 2), (2, 1)):
        page = shown(client, of, number=number)
        mark = f"with r{other} of the same step"
        assert mark in page.text
        assert page.links[f"r{other}"].endswith(f"/recorded/{other}/")


def test_a_simulated_revision_is_marked_in_every_figure(client: Client):
    made: list[records.Record] = [user("Find the port.", key="k")]
    for step in range(1, 31):
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        made.append(result(f"t{step}", f"line of {step}\n" * 300, key=f"b{step}"))
    found = stored(made)
    run = simulate_session(found, "offload-first")
    page = shown(client, found, run=str(run.pk))
    assert "Offload" in page.text
    assert "offload-first@1" in page.text
    assert "Original → stub" in page.text
    assert "simulated-number" in page.classes
    assert "estimated" not in page.classes
    assert page.links["Replay after"].endswith(f"/?run={run.pk}")
    assert f"/revisions/{run.pk}/2/" in page.links["r2 ›"]


@pytest.mark.parametrize("address", ["recorded/2/", "recorded/0/", "x/1/", f"{UUID(int=0)}/1/"])
def test_what_is_not_there_is_not_found(client: Client, address: str):
    found = stored(compacted())
    assert client.get(f"/sessions/{found.pk}/revisions/{address}").status_code == 404


def test_a_foreign_session_and_a_run_of_another_session_look_missing(client: Client):
    one, two = stored(compacted()), stored(compacted(), external_id="s2")
    run = two.runs.get()
    address = f"/sessions/{one.pk}/revisions/{run.pk}/1/"
    assert client.get(address).status_code == 404
    stranger = signed_in(other_team())
    assert stranger.get(f"/sessions/{one.pk}/revisions/recorded/1/").status_code == 404


def test_hostile_content_stays_text(client: Client):
    evil = "<script>alert(1)</script>\x00‮"
    made = [user(evil, key="a"), *compacted(says("c3", "x", key="z"), summary=evil)]
    page = shown(client, stored(made))
    assert "<script>alert" not in page.html
    assert "<script>alert(1)</script>" in page.text


def test_what_came_after_is_listed(client: Client):
    again = reads("c3", "t8", "src/f1.py", key="z")
    text = result("t8", "content of file 1", key="zr")
    page = shown(client, stored(compacted(again, text, user("No, the other file.", key="y"))))
    assert "<dt>File reads repeated</dt><dd>1<small>of 1 file</small></dd>" in page.markup
    assert '<dt>Corrections by the user</dt><dd><span class="estimated">1</span>' in page.markup
    assert "File read again" in page.text
    assert "User corrects" in page.text
    assert page.links["Step 3"].startswith("/sessions/")


def test_summaries_are_read_in_their_sections(client: Client):
    assert sections(NUMBERED) == [
        SummarySection("", "This session is being continued."),
        SummarySection("Primary Request and Intent", "- Read the files."),
        SummarySection("Key Technical Concepts", "- 1. not a heading"),
        SummarySection("Files and Code Sections", "f1.py"),
    ]
    page = shown(client, stored(compacted(summary=NUMBERED)))
    assert page.html.count('class="summary-part"') == 4


@pytest.mark.parametrize(
    "text",
    ["", "So far.", "1. One:\nx\n2. Two:\ny", "1. One thing:\n3. Three things:\n2. Two things:\n"],
)
def test_a_text_without_sections_stays_whole(text: str):
    assert sections(text) == [SummarySection("", text.strip())]


def test_a_list_before_the_sections_is_not_taken_for_them():
    before = "Analysis:\n1. First we looked:\nx\n2. Then we ran:\ny\n\nSummary:\n"
    assert [part.title for part in sections(before + NUMBERED)][1:] == [
        "Primary Request and Intent",
        "Key Technical Concepts",
        "Files and Code Sections",
    ]


def test_the_forms_that_policies_write_are_read():
    nine = "<summary>\n<pending_tasks>\nNone\n</pending_tasks>\n<current_work>\nx\n</current_work>"
    assert sections(nine) == [
        SummarySection("Pending tasks", ""),
        SummarySection("Current work", "x"),
    ]


def test_a_long_section_begins_folded():
    assert not SummarySection("a", "x" * LONG).long
    assert SummarySection("a", "x" * (LONG + 1)).long


def test_the_command_says_the_size_that_the_page_says() -> None:
    found = stored([*compacted(says("c3", "on it", key="z")), usage("c2", 900, 5_000)])
    out = StringIO()
    call_command("show", found.external_id, step=2, stdout=out)
    assert "blocks, 5,900 tokens as the provider reported; our count of the blocks: " in (
        out.getvalue()
    )
    for step, size in ((2, 5_900), (4, None)):
        out = StringIO()
        call_command("show", found.external_id, step=step, json=True, stdout=out)
        assert json.loads(out.getvalue())["tokens_reported"] == size


def test_each_sign_says_what_its_call_cost_and_how_much_of_it_was_new(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = reads("c3", "t-z", "src/f1.py", key="z")
    shown_again = result("t-z", "content of file 1\n" * 3, key="zr")
    found = stored([*compacted(again, shown_again), usage("c3", 700, 5_000)])
    found.calls.filter(step=3).update(cost_microusd=31_000)
    text = " ".join(shown(client, found).text.split())
    assert "File read again" in text and "$0.031 700 new tokens" in text
    assert "for the cache break" not in text
    broken = [{"step": 3, "cost_microusd": 8_000}]
    monkeypatch.setattr(losses, "cards_of", lambda session: broken)
    text = " ".join(shown(client, found).text.split())
    assert "$0.023 700 new tokens and $0.0080 for the cache break" in text
    assert "Tests, builds and other commands that are run again" in text
