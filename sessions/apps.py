"""The app's name, and a label that does not clash with Django's own `sessions`."""

from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"
    default_auto_field = "django.db.models.BigAutoField"
