"""Django's backend for SQLite, with less to do at each query."""
