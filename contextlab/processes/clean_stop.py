"""Tell whether servers on a data directory stopped cleanly, by a file of each, which it locks while
it runs and removes at the end."""

import fcntl
import uuid
from pathlib import Path


class ServerMark:
    """The mark of a server that runs; its lock ends with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        name = f"running-{uuid.uuid4().hex}"
        # Locked before it has its name: another server may look at that moment.
        hidden = folder / f".{name}"
        self._file = hidden.open("x")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._path = hidden.rename(folder / name)

    def end(self) -> None:
        """Record that the server has stopped."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def died(folder: Path) -> bool:
    """Whether a server died here since the last call."""
    found = False
    for path in folder.glob("running*"):
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # it still runs
            path.unlink(missing_ok=True)
            found = True
    return found
