"""Every address begins here."""

from django.urls import include, path

urlpatterns = [path("", include("sessions.urls"))]
handler403 = "sessions.views.refused.refused"
