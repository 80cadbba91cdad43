"""Addresses below /api/v1."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI

from sessions.api import (
    blobs,
    boards,
    budgets,
    caches,
    content,
    contexts,
    dashboards,
    documents,
    imports,
    jobs,
    memory,
    messages,
    pins,
    policies,
    problems,
    replay,
    reviews,
    revisions,
    rollouts,
    sessions,
    simulations,
    tools,
    tunings,
)
from sessions.api.access import KeyOrPerson
from sessions.api.bodies import CarefulParser

api = NinjaAPI(
    title="ContextLab",
    version="1",
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
for router in (
    messages.router,
    contexts.router,
    content.router,
    sessions.router,
    pins.router,
    tools.router,
    boards.router,
    memory.router,
    policies.router,
    revisions.router,
    reviews.router,
    replay.router,
    caches.router,
    simulations.router,
    simulations.lab,
    tunings.router,
    rollouts.router,
    budgets.router,
    dashboards.router,
    blobs.router,
    imports.router,
    jobs.router,
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
    path("openapi.json", documents.openapi, name="openapi"),
    path("docs", documents.docs, name="docs"),
    *_patterns(),
    path("<path:rest>", login_not_required(nothing), name="nothing"),
]
