"""The processes of a server: how they start, work, are watched and stop."""
