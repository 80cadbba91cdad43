"""Root routes."""

from django.urls import include, path

urlpatterns = [path("", include("sessions.urls"))]
handler404 = "sessions.views.web.refused.missing"
handler403 = "sessions.views.web.refused.refused"
handler404 = "sessions.views.web.refused.missing"
