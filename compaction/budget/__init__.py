"""Budgets and room in the window."""
