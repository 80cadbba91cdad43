"""Pages, one file per family."""
