"""Outlines of files by the grammar of their language; only jobs call this, never a server."""
