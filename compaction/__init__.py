"""Decides what the model will see: pure Python, no Django, no network, no clock."""
