"""Settings with which a server dies, as by kill -9, where a file says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from contextlab.settings import *  # noqa: F403
from contextlab.settings import DATA_DIR, MIDDLEWARE

MIDDLEWARE = [*MIDDLEWARE, "tests.faults.dying_settings.dying"]
ORDER = DATA_DIR / "die"
"""`before` or `after` the commit of the next request."""


def dying(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Middleware: carry out the order in the file, once."""

    def answered(request: Any) -> Any:
        from django.db import connection

        when = ORDER.read_text() if ORDER.exists() else ""
        ORDER.unlink(missing_ok=True)

        def before(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
            done = execute(sql, *rest)
            if when == "before" and sql.startswith('INSERT INTO "agent_sessions_message"'):
                os._exit(137)
            return done

        with connection.execute_wrapper(before):
            response = answer(request)
        if when == "after":
            os._exit(137)
        return response

    return answered
