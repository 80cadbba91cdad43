"""Agreement: published worked examples, and a team's queue."""

from __future__ import annotations

import pytest

from sessions.actions.reviews import agreement
from sessions.actions.reviews.agreement import alpha, nominal, ordinal
from sessions.models import Policy, PolicyVersion, ReviewItem, Revision, Session
from sessions.models.web.periods import HOUR, LAST
from tests.sessions.reviewing import item, judge, member, team

# K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), examples A, B and C.
BINARY = ["0100000010", "1110010000"]
NAMES = ["aabbdcccedda", "babbbccceddd"]
FOUR = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def units(observers: list[str]) -> list[list[str]]:
    """Ratings by unit; a dot is a missing rating."""
    assert len({len(one) for one in observers}) == 1
    return [[value for value in column if value != "."] for column in zip(*observers, strict=True)]


@pytest.mark.parametrize(
    ("observers", "delta", "published"),
    [(BINARY, nominal, 0.095), (NAMES, nominal, 0.692), (FOUR, nominal, 0.743),
     (FOUR, ordinal, 0.815)],
)  # fmt: skip
def test_alpha_is_the_published_one(observers: list[str], delta, published: float):
    found = alpha(units(observers), delta)
    assert found is not None and round(found, 3) == published


@pytest.mark.parametrize(
    ("given", "expected"),
    [([], None), ([["a"]], None), ([["a", "a"], ["a", "a"]], None), ([["a", "a"], ["b", "b"]], 1),
     ([["a", "b"], ["b", "a"]], -0.5)],
)  # fmt: skip
def test_alpha_at_its_ends(given: list[list[str]], expected: float | None):
    assert alpha(given, nominal) == expected


def test_far_apart_is_worse_than_near_where_scores_have_an_order():
    near, far = [[1, 2], [5, 4]], [[1, 4], [5, 2]]
    assert alpha(near, nominal) == alpha(far, nominal)
    assert alpha(near, ordinal) > alpha(far, ordinal)  # type: ignore[operator]


@pytest.mark.django_db
def test_agreement_is_unknown_below_five_and_of_finished_double_reviews_alone():
    ours = team()
    ann, bob = member(ours), member(ours, "bob")
    for number in range(4):
        one = item(ours, f"s{number}", wanted=2)
        judge(one, ann, "pass", goal=number + 1)
        judge(one, bob, "pass" if number else "fail", goal=number + 1)
    judge(item(ours, "single"), ann)
    judge(item(ours, "half", wanted=2), ann, "fail")
    found = agreement.agreement(ours)
    assert (found.doubles, found.known, found.alphas) == (4, False, {})
    one = item(ours, "s5", wanted=2)
    judge(one, ann, "fix", goal=5)
    judge(one, bob, "fix", goal=4)
    found = agreement.agreement(ours)
    assert found.known and found.doubles == 5
    assert found.same == {
        "goal": 0.8, "constraints": 1, "state": 1, "next": 1, "invention": 1, "verdict": 0.8,
    }  # fmt: skip
    assert found.alphas["state"] is None, "everybody always said the same"
    assert 0 < found.alphas["verdict"] < found.alphas["goal"] < 1  # type: ignore[operator]
    theirs = team("theirs")
    assert agreement.agreement(theirs).doubles == 0
    for of in ours, theirs:
        items = ReviewItem.objects.for_team(of)
        assert agreement.agreement_in(of, 0, LAST) == agreement.reviewed(items).agreement
    Session.objects.filter(runs__revisions__review_item=one).update(ended_at=HOUR)
    assert agreement.agreement_in(ours, 2 * HOUR, LAST).doubles == 4
    assert agreement.agreement_in(ours, 0, 2 * HOUR).doubles == 1


@pytest.mark.django_db
def test_what_people_found_of_a_version():
    ours = team()
    ann, bob = member(ours), member(ours, "bob")
    policy = Policy.objects.create(team=ours, name="mine")
    version = PolicyVersion.objects.create(policy=policy, number=1, document={}, digest="x")
    nothing = agreement.of_version(version)
    assert (nothing.reviews, nothing.share("pass"), nothing.means) == (0, None, {})
    for name, wanted in (("a", 2), ("b", 1), ("half", 2), ("another", 1)):
        one = item(ours, name, wanted=wanted)
        if name != "another":
            Revision.objects.filter(pk=one.revision_id).update(policy_version=version)
        judge(one, ann, "pass", goal=5)
        if name == "a":
            judge(one, bob, "fail", goal=2, invention=False)
    found = agreement.of_version(version)
    assert (found.items, found.reviews) == (2, 3)
    assert found.shares == [("pass", 2 / 3), ("fix", 0), ("fail", 1 / 3)]
    assert found.means == {"goal": 4, "constraints": 3, "state": 5, "next": 2}
    assert found.invents_nothing == 2 / 3
    assert found.agreement.doubles == 1


@pytest.mark.django_db
def test_the_ledger_is_held_against_what_people_say_of_its_facts():
    ours = team()
    ann = member(ours)
    assert agreement.ledger_checks(ours) == []
    judge(item(ours, "1"), ann, marks={"a": "kept", "b": "kept", "c": "unsupported"})
    judge(item(ours, "2"), ann, marks={"b": "lost", "+never again": "lost"})
    judge(item(ours, "half", wanted=2), ann, marks={"a": "lost"})
    found = {one.state: one for one in agreement.ledger_checks(ours)}
    assert list(found) == ["kept", "lost", "unsupported"]
    answer = {name: (one.confirmed, one.suggested, one.said) for name, one in found.items()}
    assert answer == {"kept": (1, 1, 2), "lost": (1, 2, 2), "unsupported": (1, 1, 1)}
    assert found["kept"].precision is None, "a share of one fact says nothing"
    enough = agreement.LedgerCheck("lost", suggested=10, confirmed=6, said=9)
    assert (enough.precision, enough.recall) == (0.6, None)


@pytest.mark.django_db
def test_without_a_ledger_marks_count_for_recall_alone():
    ours = team()
    one = item(ours)
    one.revision.fact_ledger.delete()
    judge(one, member(ours), marks={"+the port": "lost"})
    (found,) = agreement.ledger_checks(ours)
    assert (found.state, found.suggested, found.said) == ("lost", 0, 1)
