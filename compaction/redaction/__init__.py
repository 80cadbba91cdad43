"""Find and mask secrets and personal data."""
