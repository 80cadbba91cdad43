"""Web pages, one package per subject."""
