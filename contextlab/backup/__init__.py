"""Backups: the whole store in one file, taken while it is in use, checked when it is restored."""
