"""A power failure, simulated by kill -9 of the server process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextlab.client import Refused
from tests.conftest import Server
from tests.faults.live_agent import Work, new_token, watching
from tests.faults.store import in_data_dir

Start = Callable[..., Server]


@pytest.mark.parametrize("kills", [0, 2])
def test_nothing_acknowledged_is_lost_and_the_page_catches_up(
    browser: Any, server_with: Start, tmp_path: Path, kills: int
) -> None:
    server = server_with()
    with (
        Work(server.address, new_token(tmp_path), "killed", tmp_path) as work,
        watching(browser, server, work) as watched,
    ):
        work.start()
        try:
            for kill in range(1, kills + 1):
                work.reached(kill / (kills + 1))
                server.kill()
                server = server_with(PORT=str(server.port))
            work.ended()
        except Refused as error:
            # Seen twice while the database was memory-mapped: a returned context was lost.
            raise AssertionError(work.explain(in_data_dir(tmp_path))) from error
        watched.catches_up()
        watched.tell(f"server killed {kills} times")
        work.audit(in_data_dir(tmp_path))
    assert server.stop() == 0
