"""Addresses of pages and of the API."""

from django.urls import include, path

from sessions.views import health, imports, jobs, keys, live, login, replay, revisions, sessions

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", include("sessions.api.urls")),
    path("", sessions.home, name="home"),
    path("start/", sessions.start, name="start"),
    path("start/demo/", sessions.demo, name="demo"),
    path("sessions/", sessions.sessions, name="sessions"),
    path("sessions/<uuid:session_id>/", replay.replay, name="replay"),
    path("sessions/<uuid:session_id>/steps/<int:step>/", replay.replay, name="replay_step"),
    path("sessions/<uuid:session_id>/diff/<int:a>..<int:b>/", replay.diff, name="diff"),
    path(
        "sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/",
        revisions.revision,
        name="revision",
    ),
    path(
        "sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/undo/",
        revisions.undo,
        name="revision_undo",
    ),
    path("live/", live.live, name="live"),
    path("settings/keys/", keys.keys, name="keys"),
    path("settings/keys/<str:prefix>/revoke/", keys.revoke, name="key_revoke"),
    path("imports/", imports.imports, name="imports"),
    path("imports/<uuid:import_id>/", imports.report, name="import"),
    path(
        "imports/<uuid:import_id>/skipped/<int:record_id>/", imports.skipped, name="import_skipped"
    ),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", jobs.cancel, name="job_cancel"),
    path("jobs/<uuid:job_id>/retry/", jobs.retry, name="job_retry"),
    path("login/<str:token>/", login.enter, name="login"),
    path("logout/", login.leave, name="logout"),
]
