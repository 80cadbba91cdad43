"""Fills a store, before its server starts, with reviewers and compactions for them to judge."""

from __future__ import annotations

import django

NAMES, OTHERS = ("ann", "bob"), ("cat", "dan")
OWNER = "eve"
PASSWORD = "a long enough phrase"
ITEMS = 10


def main() -> None:
    """Ten that Ann and Bob are both to judge; and of another team two that Cat or Dan may have."""
    django.setup()
    from django.contrib.auth import get_user_model

    from sessions.actions.accounts.teams import local_team
    from sessions.models import Membership, ReviewItem, Team
    from tests.sessions.reviewing import compaction

    other = Team.objects.create(slug="other", name="Other")
    owner = get_user_model().objects.create_user(OWNER, password=PASSWORD)
    Membership.objects.create(user=owner, team=local_team(), role="owner")
    for team, names, items, wanted in ((local_team(), NAMES, ITEMS, 2), (other, OTHERS, 2, 1)):
        for name in names:
            person = get_user_model().objects.create_user(name, password=PASSWORD)
            Membership.objects.create(user=person, team=team, role="reviewer")
        for number in range(items):
            summary = f"{number}: src/f1.py was read; <b>port</b> 8765 is set.\u202e\n" * 3
            revision = compaction(team, f"s{number}", summary=summary)
            ReviewItem.objects.create(team=team, revision=revision, reason="hand", wanted=wanted)


if __name__ == "__main__":
    main()
