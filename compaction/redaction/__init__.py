"""Secrets and personal data, found and masked."""
