"""Remembers sessions and shows them: the one Django app."""
