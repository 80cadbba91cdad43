"""App configuration; makes Django find this package's commands and built assets."""

from django.apps import AppConfig
from django.conf import settings


class ContextlabConfig(AppConfig):
    name = "contextlab"
    verbose_name = "ContextLab"

    def ready(self) -> None:
        from contextlab import database
        from contextlab.live import followers

        followers.connect()
        database.hold_connections()
        database.bound_waits()
        # With a broker, every process may need to notify workers. Without one only `serve` does,
        # and the other commands skip the import.
        if settings.REDIS_URL:
            from contextlab import celery  # noqa: F401
