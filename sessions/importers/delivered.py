"""What a live agent sends, as JSON values, brought into records; wrong input is named by its place.

Each message is Anthropic-shaped, OpenAI-shaped, or our own; which, is seen message by message.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sessions.importers import records
from sessions.importers.records import Json


class Unacceptable(ValueError):
    """Input that is refused: where it is (a JSON pointer), and what is wrong with it, a sentence."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer}: {problem}")
        self.pointer = pointer
        self.problem = problem


@dataclass(slots=True)
class Delivery:
    """One batch of an agent, ready for the store.

    `records` are messages and what is known of their calls, in order; a Call of id "" belongs to
    the assistant message before it. `tools` (a list of definitions) and `system` (text blocks) are
    None where the batch says nothing of them, empty where there are none. `history` says whether
    the batch is the whole conversation again; None: to be recognised.
    """

    records: list[records.Record] = field(default_factory=list)
    tools: list[Json] | None = None
    system: list[dict[str, Json]] | None = None
    model: str = ""
    context_id: str = ""
    history: bool | None = None


def delivery(body: Json) -> Delivery:
    """Read the body of an append: {"messages": […], "tools", "system", "usage", …}.

    Raises Unacceptable at the first thing that is wrong; then nothing of it is to be stored.
    """
    raise NotImplementedError
