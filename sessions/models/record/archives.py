"""Archives: the messages of cold sessions, packed."""

from __future__ import annotations

from django.db import OperationalError, models

from sessions.models.record.sessions import Session


class ArchivedMeanwhile(OperationalError):
    """A session was archived after it was looked up; answered like a busy database, as the next
    attempt unpacks it."""


class Archive(models.Model):
    """The messages, blocks and entries of a session that is archived, in one compressed content.

    `sha` is the team's blob with them (`actions/archives/packed.py`). `rows` counts them by table,
    `bytes` is its size, `text_bytes`
    that of the texts. `loose` is set until what it holds is deleted elsewhere,
    `opening` while it is unpacked: rows of both kinds of work may then be there in part.
    """

    session = models.OneToOneField(
        Session, primary_key=True, on_delete=models.CASCADE, related_name="archive"
    )
    sha = models.CharField(max_length=64)
    rows = models.JSONField(default=dict)
    bytes = models.PositiveBigIntegerField(help_text="as stored, compressed")
    text_bytes = models.PositiveBigIntegerField()
    loose = models.BooleanField(default=True)
    opening = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"archive of {self.session_id}"
