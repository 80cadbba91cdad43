"""Policies: settings, presets, validation and resolution."""
