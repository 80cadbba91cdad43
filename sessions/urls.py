"""Addresses of pages and of the API."""

from django.urls import include, path

from sessions.views import (
    dashboard,
    health,
    imports,
    jobs,
    keys,
    live,
    login,
    replay,
    review_items,
    reviews,
    revisions,
    sessions,
)

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", include("sessions.api.urls")),
    path("", sessions.home, name="home"),
    simulated,
    path("dashboard/", dashboard.page, name="dashboard"),
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
    path("sessions/<uuid:session_id>/simulate/", simulated.simulate_beside, name="simulate_beside"),
    path(
        "sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/undo/",
        revisions.undo,
        name="revision_undo",
    ),
    path("review/", reviews.queue, name="reviews"),
    path("review/next/", reviews.next_item, name="review_next"),
    path("review/more/", reviews.more, name="review_more"),
    path("review/skipped/", reviews.skipped, name="review_skipped"),
    path("review/add/", reviews.add, name="review_add"),
    path("review/rules/", reviews.rules, name="review_rules"),
    path("review/items/<uuid:item_id>/", review_items.item, name="review_item"),
    path("review/items/<uuid:item_id>/blocks/", review_items.blocks, name="review_blocks"),
    path("review/items/<uuid:item_id>/submit/", review_items.submit, name="review_submit"),
    path("review/items/<uuid:item_id>/renew/", review_items.renew, name="review_renew"),
    path("review/items/<uuid:item_id>/skip/", review_items.skip, name="review_skip"),
    path("review/items/<uuid:item_id>/release/", review_items.release, name="review_release"),
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
