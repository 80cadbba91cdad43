"""Makes Django find the commands and the built pages of this package."""

from django.apps import AppConfig
from django.conf import settings


class ContextlabConfig(AppConfig):
    name = "contextlab"
    verbose_name = "ContextLab"

    def ready(self) -> None:
        # With a broker every process may have something to tell the workers. Without one only
        # `serve` does, and the other commands are spared the import.
        if settings.REDIS_URL:
            from contextlab import celery  # noqa: F401
