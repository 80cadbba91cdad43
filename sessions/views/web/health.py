"""Health check for monitoring."""

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from sessions.views.web.pages import Page


@login_not_required
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Return 200 if the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    return JsonResponse({"status": "ok"})


PAGES = (Page(route="healthz", view=healthz, name="healthz", public=True),)
