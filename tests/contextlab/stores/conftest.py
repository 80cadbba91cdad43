"""Databases of their own for tests of commands that make, migrate and copy them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contextlab.stores.separate_store import PostgresStore, SqliteStore, Store


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two empty databases."""
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "old"), SqliteStore(tmp_path / "new")
        return
    server = request.getfixturevalue("postgres")
    made = [PostgresStore(tmp_path / name, server) for name in ("old", "new")]
    yield made[0], made[1]
    for store in made:
        store.administer(f"DROP DATABASE {store.name} WITH (FORCE)")
