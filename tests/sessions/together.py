"""Concurrent work, each on its own connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection


def at_once(refusal: type[Exception], *works: Callable[[], Any]) -> list[Any]:
    """Run each in its own thread; return results or refusals."""
    together, came = threading.Barrier(len(works)), [None] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        together.wait(10)
        try:
            came[place] = work()
        except refusal as error:
            came[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return came
