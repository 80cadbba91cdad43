"""Prices set by the operator: the file named by CONTEXTLAB_PRICES, read at startup."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from compaction.prices import prices
from compaction.prices.own_prices import InvalidPrices, own_prices


def install_prices(path: str) -> None:
    """Load the file; its prices override list prices. Raises ValueError with the file and the
    field."""
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
    except ValueError as problem:  # from either format, or the encoding
        raise ValueError(f"CONTEXTLAB_PRICES: {file} cannot be read: {problem}") from None
