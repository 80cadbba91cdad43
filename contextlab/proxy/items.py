"""Items of OpenAI's Responses API, as Codex sends them."""

from __future__ import annotations

from contextlab.client.forms.form import Json
from contextlab.client.forms.items import BY_PROVIDER, KEPT, beside, kept, type_of
from sessions.importers.codex.items import item_of


def message_of(item: Json) -> Json | None:
    """An item as a message of blocks, as an import of Codex's log stores it; None if we do not
    know its type."""
    form = type_of(item)
    made = item_of(kept(item)) if form in KEPT or form in BY_PROVIDER else None
    if made is None:
        return None
    blocks: list[Json] = [dict(block) for block in made.blocks] or [{"type": "text", "text": ""}]
    if more := beside(item):
        blocks[0]["item"] = more
    role = "user" if made.role == "tool" else made.role
    person = {"human": made.human} if made.role == "user" else {}
    return {"role": role, "content": blocks, **({"kind": made.kind} if made.kind else {}), **person}
