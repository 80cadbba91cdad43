"""Addresses below /api/v1."""

from django.urls import path

from sessions.api import jobs, replay, simulations

app_name = "api"
urlpatterns = [
    path("sessions/<uuid:session_id>/manifest", replay.manifest, name="manifest"),
    path("sessions/<uuid:session_id>/previews", replay.previews, name="previews"),
    path("sessions/<uuid:session_id>/entry", replay.entry, name="entry"),
    path("sessions/<uuid:session_id>/diff", replay.diff, name="diff"),
    path("sessions/<uuid:session_id>/simulations", simulations.simulations, name="simulate"),
    path("jobs/<uuid:job_id>", jobs.job, name="job"),
]
