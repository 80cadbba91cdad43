"""The guided tour: what each stop says. Where it leads is a matter of pages."""

from __future__ import annotations

from dataclasses import dataclass

PLACE = "tour_place"
"""Where a browser's session keeps the path of the stop it was led to."""


@dataclass(frozen=True, slots=True)
class TourStop:
    """A stop: its title, and what to look at; `beside` instead where a team has sessions of its
    own, as those of the demo do not count then."""

    title: str
    text: str
    beside: str = ""


STOPS = (
    TourStop(
        "Dashboard",
        "What agents cost, what of it was avoidable, and whether the model still had what it "
        "needed. The sessions here are made up.",
        "What agents cost, what of it was avoidable, and whether the model still had what it "
        "needed. These are your own sessions: those of the demo do not count beside them.",
    ),
    TourStop(
        "What to do",
        "Fixes, ranked by dollars. One says that sessions without a policy lost facts; its link "
        "lists them.",
        "Fixes for your own sessions, ranked by dollars; each button leads to where it is done. "
        "The next stops show a demo session.",
    ),
    TourStop(
        "A compaction's verdict",
        "The agent summarized its own history. The first sentence says what was lost and needed "
        "again; the proof is below.",
    ),
    TourStop(
        "Why did it forget?",
        "The port 8417: where the model first saw it, which step dropped it, what happened then, "
        "and which policies would have kept it.",
    ),
    TourStop(
        "Replay",
        "The message in which the agent says that the summary lacks the port, in the context with "
        "the page that it read again. The arrow keys move through the session.",
    ),
    TourStop(
        "Simulation",
        "The same sessions under a draft policy: cost and needed-later recall beside the active "
        "policy and the recording. This is how you try a policy before it runs.",
    ),
)
