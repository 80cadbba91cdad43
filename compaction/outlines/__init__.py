"""Outlines of files by the grammar of their language; called by jobs only, never by a server."""
