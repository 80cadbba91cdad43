"""Routes of pages and API."""

from django.urls import include, path

from sessions.views.web.pages import pages

urlpatterns = [
    path("api/v1/", include("sessions.api.urls")),
    *(page.pattern for page in pages()),
]
