"""What `simulate` prints of tool definitions and of the prompt that no log shows."""

from __future__ import annotations

from typing import Any


def defined(answer: dict[str, Any]) -> str:
    """What the hidden prompt and tool definitions cost, and the saving without unused ones."""
    rows = answer["per_session"]
    lines = []
    if answer["hidden_microusd"]:
        of = [row for row in rows if row["hidden_microusd"] is not None]
        spent = _share(answer["hidden_microusd"], of)
        lines.append(f"Prompt not in the log (system, tools), inferred: {spent}.")
    shown = [row for row in rows if row["definition_tokens_sent"]]
    if not shown:
        lines.append("Tool definitions: unknown, the log shows none.")
    else:
        of = [row for row in shown if row["definitions_microusd"] is not None]
        cost, saved = answer["definitions_microusd"], answer["unused_definitions_microusd"]
        money = "at an unknown cost"
        if of:
            money = (
                f"{_share(cost, of)}; without the never used ones from the start: -{_usd(saved)}"
            )
        lines.append(
            f"Tool definitions, in {len(shown):,} of {len(rows):,} sessions: "
            f"{answer['definition_tokens_sent']:,} tokens sent, "
            f"{answer['unused_definition_tokens_sent']:,} of tools never used; {money}."
        )
    return "\n".join(lines)


def _share(cost: int, rows: list[dict[str, Any]]) -> str:
    """A cost, and its share of what these sessions cost."""
    whole = sum(row["cost_microusd"] or 0 for row in rows)
    return f"{_usd(cost)}{f' ({cost / whole:.1%} of cost)' if whole else ''}"


def _usd(microusd: int) -> str:
    return f"${microusd / 1e6:.2f}" if microusd >= 10_000 else f"${microusd / 1e6:.4f}"
