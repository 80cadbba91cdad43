"""Which keys our server accepts, as far as it answers."""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import Executor

from contextlab.client.connection import Refused
from contextlab.proxy.sessions import ProxySessions

TOKEN = "clk_"  # noqa: S105 (no secret)
"""How a key begins."""
_KEY = re.compile(TOKEN + r"[0-9A-Za-z]{1,100}")
CHECK_SECONDS = 2.0
"""How long a call waits for the check of its key."""
KNOWN_SECONDS = 5.0
"""How long a key that our server accepted is not checked again, and so how long a revoked one
passes."""
KEPT = 1_000
"""Keys that are remembered; those accepted last."""
AWAY_SECONDS = 5.0
"""How long our server is not asked again after it did not answer."""


class KnownKeys:
    """Checks keys, and remembers those that were accepted.

    While our server does not answer, every key passes: agents must go on.
    """

    def __init__(self, sessions: ProxySessions, threads: Executor) -> None:
        self._sessions, self._threads = sessions, threads
        self._known: dict[str, float] = {}
        self._away_until = 0.0

    async def accepts(self, key: str) -> bool:
        """Whether calls with a key are passed on."""
        now = time.monotonic()
        # Others would fail before our server is asked, as if it were away.
        if _KEY.fullmatch(key) is None:
            return False
        if now < max(self._known.get(key, 0), self._away_until):
            return True
        loop = asyncio.get_running_loop()
        try:
            work = loop.run_in_executor(self._threads, self._check, key)
            await asyncio.wait_for(work, CHECK_SECONDS)
        except Refused as error:
            self._known.pop(key, None)
            return error.status not in (401, 403)
        except Exception:  # noqa: BLE001 (of any kind: an agent must not stop because of us)
            self._away_until = time.monotonic() + AWAY_SECONDS
            return True
        # From before the check: it may have been revoked since.
        others = [one for one in self._known.items() if one[0] != key][1 - KEPT :]
        self._known = dict([*others, (key, now + KNOWN_SECONDS)])
        return True

    def was_accepted(self, key: str) -> bool:
        """Whether a key was accepted before, and not refused since."""
        return key in self._known

    def _check(self, key: str) -> None:
        server = self._sessions.server(key).hurried(0)
        # What costs our server least: it looks nothing up.
        server.request("GET", "memory/tool")
