"""App configuration, with a label that does not clash with Django's own `sessions`."""

from django.apps import AppConfig
from django.conf import settings


class SessionsConfig(AppConfig):
    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        if settings.PRICES_FILE:
            from sessions.price_file import install_prices

            install_prices(settings.PRICES_FILE)
