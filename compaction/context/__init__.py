"""Blocks, edits and the rules that keep a context valid."""
