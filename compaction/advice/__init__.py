"""Lint, suggestions and tuning of policies."""
