"""Addresses of pages and of the API."""

from django.urls import include, path

from sessions.views import health, login, replay

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", include("sessions.api.urls")),
    path("sessions/<uuid:session_id>/", replay.replay, name="replay"),
    path("sessions/<uuid:session_id>/steps/<int:step>/", replay.replay, name="replay_step"),
    path("sessions/<uuid:session_id>/diff/<int:a>..<int:b>/", replay.diff, name="diff"),
    path("login/<str:token>/", login.enter, name="login"),
    path("logout/", login.leave, name="logout"),
]
