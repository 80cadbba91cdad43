"""Addresses of pages and of the API."""

from django.urls import path

from sessions.views import health, login

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("login/<str:token>/", login.enter, name="login"),
]
