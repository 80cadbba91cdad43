"""New topics, judged without a model: what announces one, what ties a message to what was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.fold.fold import Arrival, advance, start
from compaction.policies.presets import PRESETS
from compaction.proposals.plan import Means
from compaction.topic.terms import LONGEST
from compaction.topic.topic import ROUNDS, Boundary, Round, Rounds, is_new, signs
from tests.build import Talk, rough

LOGIN = [
    Round(
        "The login form in src/auth/login.tsx rejects valid passwords, please find out why.",
        "The comparison in src/auth/login.tsx trimmed the password first. I fixed validatePassword "
        "and its test.",
    )
]
BRIEF = (
    "Write a weekly report generator: read invoices from the warehouse export, group amounts by "
    "supplier and currency, convert everything into euros, render charts as SVG and mail the "
    "finished document to accounting every Monday morning."
)


@pytest.mark.parametrize(
    "message",
    [
        BRIEF,
        "Next task: dark mode for the settings page with a toggle in the header bar.",
        "Thanks, perfect. New topic: prepare Kubernetes manifests for the staging cluster please.",
        "Neue Aufgabe: Übersetze die Startseite ins Französische und prüfe Umlaute im Menü.",
        "换个话题：帮我写一个爬虫，抓取天气预报网站的数据并保存到数据库里面",
        "別のタスク：倉庫の在庫一覧をCSVに書き出すスクリプトを作ってください",
    ],
)
def test_something_new_begins(message: str) -> None:
    assert is_new(LOGIN, message)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "   ",
        "yes",
        "continue",
        "commit and push",
        "Now the same for the signup form",
        "Does validatePassword also trim the user name?",
        "also mail the report to accounting every Monday, with charts by supplier and currency",
        "it still rejects some of them, have another look at this",
        'Traceback (most recent call last):\n  File "app/mailer/outbox.py", line 12\n' + BRIEF,
        "好的，继续",
        "提交并推送",
        f"<system-reminder>{BRIEF}</system-reminder>",
        f"{BRIEF} It looked like this:\n    var title string\n    hint := suppress(title)\n",
    ],
)
def test_what_was_goes_on(message: str) -> None:
    assert not is_new(LOGIN, message)


def test_a_first_message_begins_nothing_new() -> None:
    assert not is_new([], BRIEF)


def test_a_list_of_plain_sentences_is_no_code() -> None:
    listed = f"{BRIEF}\n\n- charts as SVG\n- one page for each supplier\nFor example:\n- euros\n"
    assert is_new(LOGIN, listed)


def test_overlap_of_names_and_words_speaks_against() -> None:
    answer = signs(LOGIN, "Look at src/auth/login.tsx and validatePassword again")
    assert answer.known == 2
    assert answer.share > 50
    assert answer.points < signs([Round("bake bread")], "Look at login.tsx").points + 20


def test_only_the_last_rounds_and_the_last_text_are_looked_at() -> None:
    rounds = [Round(BRIEF), *LOGIN * ROUNDS]
    assert is_new(rounds, BRIEF)
    assert not is_new(rounds[:ROUNDS], BRIEF)


def test_what_is_repeated_in_chinese_counts_as_seen() -> None:
    said = "帮我写一个爬虫，抓取天气预报网站的数据并保存到数据库里面，然后每天生成报告"
    assert signs([Round(said)], said).share == 100
    assert not is_new([Round(said)], said)


TEXTS = st.text(max_size=200) | st.sampled_from([BRIEF, "yes", "爬虫" * 40, "a_b/c.py\n" * 60])


@given(st.lists(st.builds(Round, TEXTS, TEXTS), max_size=5), TEXTS)
def test_judging_is_a_pure_function_of_the_last_rounds(rounds: list[Round], message: str) -> None:
    assert is_new(rounds, message) == is_new(rounds[-ROUNDS:], message)
    assert is_new(rounds, message) == is_new(rounds, message + " " * 3)
    assert not is_new([*rounds, Round(message)], message) or signs(rounds, message).announced


@given(TEXTS)
def test_long_texts_cost_no_more(text: str) -> None:
    long = (text or "x") * (LONGEST // max(len(text), 1) + 2)
    assert signs(LOGIN, long) == signs(LOGIN, long[:LONGEST])


def _todo(talk: Talk, *states: str) -> None:
    talk.respond()
    todos = [{"content": f"part {n}", "status": state} for n, state in enumerate(states)]
    talk.result(talk.call("TodoWrite", {"todos": todos}), "ok")


def _boundaries(talk: Talk) -> list[Boundary]:
    """What the fold says before each call; a last call answers the last message."""
    talk.respond()
    talk.say("done")
    state = start(PRESETS["passthrough"], 200_000, Means(rough, lambda _: None))
    found: list[Boundary] = []
    for step in range(1, talk.step + 1):
        advance(state, Arrival(step, tuple(b for b in talk.blocks if b.born == step)))
        found.append(state.rounds.boundary(step))
    return found


def test_the_fold_tells_a_new_topic_at_the_call_that_answers_it_alone() -> None:
    talk = Talk()
    talk.user(LOGIN[0].said)
    for text in ("Looking.", LOGIN[0].answered):
        talk.respond()
        talk.say(text)
    talk.user(BRIEF)
    talk.respond()
    talk.say("I begin with the export.")
    assert _boundaries(talk) == ["", "", "new_topic", ""]


def test_a_todo_list_worked_off_ends_a_task_at_the_next_message() -> None:
    talk = Talk()
    talk.user("do both parts")
    _todo(talk, "completed", "in_progress")
    talk.user("and?")
    _todo(talk, "completed", "completed")
    talk.user("fine, commit")
    talk.respond()
    talk.say("Committed.")
    talk.user("push")
    assert _boundaries(talk) == ["", "", "task_done", ""]


def test_what_programs_write_is_no_message_of_a_person() -> None:
    talk = Talk()
    talk.user(LOGIN[0].said)
    talk.respond()
    talk.say("Looking.")
    talk.user("<task-notification>" + BRIEF)
    assert _boundaries(talk)[-1] == ""


def test_rounds_join_the_blocks_of_one_message() -> None:
    rounds, talk = Rounds(), Talk()
    for block in (talk.user(LOGIN[0].said), talk.add(BRIEF, role="user", type="text", kind="user")):
        rounds.add(block, None)
    rounds.add(talk.user("go on"), None)
    assert rounds.past == [Round(f"{LOGIN[0].said}\n{BRIEF}")]


def test_a_bare_command_to_the_program_is_no_round() -> None:
    rounds, talk = Rounds(), Talk()
    for text in (
        LOGIN[0].said,
        "/mode",
        " /security-review \n",
        "/etc/hosts lacks a line",
        "go on",
    ):
        rounds.add(talk.user(text), None)
    assert [one.said for one in rounds.past] == [LOGIN[0].said, "/etc/hosts lacks a line"]
