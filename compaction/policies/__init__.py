"""Policies: their values, presets, checks, and where better ones are looked for."""
