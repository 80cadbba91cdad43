"""A hit as the search page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from sessions.models.search.presence import BlockState
from sessions.models.search.search import Hit
from sessions.views.web.places import entry_url, step_url

STATES = {
    "in_context": "in context",
    "named": "left at step {step}, a summary has the words",
    "retrievable": "offloaded at step {step}",
    "lost": "lost at step {step}",
    "left": "taken back at step {step}",
    "ended": "until step {step}",
}


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit as the page shows it."""

    hit: Hit

    @property
    def url(self) -> str:
        """The replay at the step where the block appears, with the block selected."""
        hit = self.hit
        if hit.replacement:
            return step_url(hit.session, hit.step, hit.run, hit.replacement)
        return entry_url(hit.session, hit.block)

    @property
    def step(self) -> int:
        """The first step whose context has the block, at which its link opens the replay."""
        return max(1, min(self.hit.step, self.hit.session.step_count or 1))

    @property
    def state(self) -> str:
        """Where the block is at the end."""
        return state_text(self.hit.presence)

    @property
    def state_url(self) -> str:
        """The replay at the step at which the block left the context."""
        return entry_url(self.hit.session, self.hit.block, self.hit.presence.step)

    @property
    def why_url(self) -> str:
        """Why the text left the context; empty if it did not. Of several words that match, a number
        or the longest is asked for: common words occur in too many blocks to be followed."""
        found = [text for matches, text in self.hit.excerpt if matches]
        matched = max(
            found, key=lambda text: (any(map(str.isdecimal, text)), len(text)), default=""
        )
        if self.hit.presence.state in ("in_context", "ended") or not matched:
            return ""
        return f"{reverse('why', args=[self.hit.session.pk])}?{urlencode({'text': matched})}"


def state_text(presence: BlockState) -> str:
    """Where a block is, in words."""
    return STATES[presence.state].format(step=presence.step)
