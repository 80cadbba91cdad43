"""Tell whether the last server on a data directory stopped cleanly, by a file that it removes."""

from pathlib import Path

_NAME = "running"


def begin(folder: Path) -> bool:
    """Record that a server runs. Returns False if the last one did not stop cleanly."""
    mark = folder / _NAME
    clean = not mark.exists()
    mark.touch(mode=0o600)
    return clean


def end(folder: Path) -> None:
    """Record that the server has stopped."""
    (folder / _NAME).unlink(missing_ok=True)
