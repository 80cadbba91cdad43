"""The strategies under their names: the index of this folder, written by hand."""

from __future__ import annotations

from compaction.plan import Strategy
from compaction.strategies import (
    compact,
    dedupe,
    externalise,
    offload,
    outline,
    payback,
    replace,
    shard,
    window,
)

STRATEGIES: dict[str, Strategy] = {
    "dedupe": Strategy("dedupe", dedupe.dedupe, dedupe.Dedupe, dedupe.MARK),
    "outline": Strategy("outline", outline.outline, outline.Outline, outline.MARK),
    "externalise": Strategy(
        "externalise", externalise.externalise, externalise.Externalise, externalise.MARK
    ),
    "shard": Strategy("shard", shard.shard, shard.Shard, shard.MARK),
    "replace": Strategy("replace", replace.replace, replace.Replace, replace.MARK),
    "offload": Strategy("offload", offload.offload, offload.Offload, offload.MARK),
    "payback": Strategy("payback", payback.payback, payback.Payback),
    "compact": Strategy("compact", compact.compact, compact.Compact, compact.MARK),
    "window": Strategy("window", window.window, window.Window, window.MARK),
}
