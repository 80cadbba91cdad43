"""Addresses below /api/v1."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI

from sessions.api.accounts import keys
from sessions.api.assessments import verdicts
from sessions.api.budgets import budgets
from sessions.api.dashboard import dashboards
from sessions.api.erasure import erasures, keeping
from sessions.api.imports import imports, traces
from sessions.api.ingestion import ingestion
from sessions.api.ingestion.inspected import inspect_arrivals
from sessions.api.jobs import jobs
from sessions.api.lab import simulations, tunings
from sessions.api.live import (
    content,
    contexts,
    forecasts,
    messages,
    pausing,
    pins,
    revisions,
    steps,
)
from sessions.api.masking import masking
from sessions.api.memory import boards, memory
from sessions.api.notifications import notifications
from sessions.api.policies import policies, rollouts
from sessions.api.record import blobs, caches, sessions
from sessions.api.replay import comparison, exports, replay, revealed, step_notes, texts, why
from sessions.api.reviews import reviews
from sessions.api.search import search
from sessions.api.tools import tools
from sessions.api.web import documents, problems
from sessions.api.web.exchange import CarefulParser, KeyOrPerson
from sessions.api.web.queries import check_queries

api = NinjaAPI(
    title="ContextLab",
    version=settings.VERSION,
    description=(
        "Messages in, managed context out. An agent makes a session, appends what is said, and "
        "asks for its context before each model call."
    ),
    urls_namespace="api",
    auth=KeyOrPerson(),
    parser=CarefulParser(),
    openapi_url=None,
    docs_url=None,
)
problems.register(api)
api.add_decorator(check_queries, mode="view")
api.add_decorator(inspect_arrivals, mode="view")
for router in (
    messages.router,
    contexts.router,
    steps.router,
    content.router,
    sessions.router,
    exports.router,
    search.router,
    pins.router,
    pausing.router,
    forecasts.router,
    tools.router,
    boards.router,
    memory.router,
    policies.router,
    revisions.router,
    reviews.router,
    replay.router,
    revealed.router,
    texts.router,
    step_notes.router,
    why.router,
    verdicts.router,
    comparison.router,
    caches.router,
    simulations.router,
    simulations.lab,
    tunings.router,
    rollouts.router,
    budgets.router,
    dashboards.router,
    blobs.router,
    imports.router,
    traces.router,
    jobs.router,
    keys.router,
    notifications.router,
    ingestion.router,
    erasures.router,
    keeping.router,
    masking.router,
    sessions.last,
):
    api.add_router("", router)


@csrf_exempt
def nothing(request: HttpRequest, rest: str) -> HttpResponse:
    """What no operation answers to."""
    return problems.missing(request)


def _patterns() -> list[URLPattern]:
    """Open to the login's middleware: each operation asks for a key itself."""
    return [
        path(str(pattern.pattern), login_not_required(pattern.callback), name=pattern.name)
        for pattern in api.urls[0]
        if isinstance(pattern, URLPattern) and pattern.name != "api-root"
    ]


app_name = "api"
urlpatterns = [
    path("openapi.json", documents.openapi, {"api": api}, name="openapi"),
    path("docs", documents.docs, {"api": api}, name="docs"),
    *_patterns(),
    path("<path:rest>", login_not_required(nothing), name="nothing"),
]
