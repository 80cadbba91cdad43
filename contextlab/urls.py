"""Root routes."""

from django.urls import include, path

urlpatterns = [path("", include("sessions.urls"))]
handler403 = "sessions.views.web.refused.refused"
