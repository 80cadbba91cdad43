"""Agents of the demo that do not write code: one reads the web, one answers passengers."""
