"""Large files of a form, while a request is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.files.uploadhandler import TemporaryFileUploadHandler


class NamelessFileUploadHandler(TemporaryFileUploadHandler):
    """Keeps a file on the disk without a name: if the server is killed, nothing of it stays."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Create the file, and remove its name."""
        super().new_file(*args, **kwargs)
        Path(self.file.temporary_file_path()).unlink()
