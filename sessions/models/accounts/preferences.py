"""How a person wants pages to look."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Preferences(models.Model):
    """The settings of one person; an empty text means the usual.

    `time_zone` is an IANA name, `first_page` the name of a route, `date_range` one of
    `periods.RANGES` or `CALENDAR`. `tour` is the stop of the guided tour that the person is at,
    from 1; 0 once it was ended, null before it began.
    """

    class Theme(models.TextChoices):
        SYSTEM = "", "As the system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    theme = models.CharField(max_length=8, choices=Theme.choices, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    first_page = models.CharField(max_length=40, blank=True)
    date_range = models.CharField(max_length=12, blank=True)
    less_motion = models.BooleanField(default=False)
    tour = models.PositiveSmallIntegerField(null=True)

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


PREFERRED = ("theme", "time_zone", "first_page", "date_range", "less_motion", "tour")
"""The columns that pages use."""
