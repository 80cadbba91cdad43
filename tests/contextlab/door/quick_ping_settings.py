"""Settings with which sockets are asked every second whether anybody reads, not every 20."""

from functools import partialmethod
from typing import Any

import daphne.server

from contextlab.settings import *  # noqa: F403

_Server: Any = daphne.server.Server
_Server.__init__ = partialmethod(_Server.__init__, ping_interval=1, ping_timeout=1)
