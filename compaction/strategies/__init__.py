"""All strategies by name: the `STRATEGY` records of the files in this folder."""

from __future__ import annotations

from compaction.context.blocks import Block
from compaction.proposals.strategy import Strategy
from compaction.records import in_order, records_in

STRATEGIES: dict[str, Strategy] = in_order(records_in(__name__, __path__, "STRATEGY"))


def entered_short(block: Block) -> bool:
    """Return whether a block replaces an original that no model had seen."""
    made_by = STRATEGIES.get(block.id.partition(":")[0])
    return made_by is not None and made_by.event == "entry"
