"""The operator's own prices: a file that CONTEXTLAB_PRICES names, read when the process starts."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from compaction import prices
from compaction.own_prices import InvalidPrices, own_prices


def install_prices(path: str) -> None:
    """Reads the file and lets it go before listed prices; raises ValueError, a sentence that names
    the file and the field."""
    file = Path(path)
    try:
        own = own_prices(_document(file), f"own prices ({file.name})")
    except OSError as problem:
        raise ValueError(f"CONTEXTLAB_PRICES: {file} cannot be read: {problem.strerror}") from None
    except InvalidPrices as problem:
        raise ValueError(f"CONTEXTLAB_PRICES: {file}: {problem}") from None
    prices.install(own.prices, own.windows, own.minimums)


def _document(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
        return json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except ValueError as problem:  # of both formats, and of the encoding
        raise ValueError(f"CONTEXTLAB_PRICES: {file} cannot be read: {problem}") from None
