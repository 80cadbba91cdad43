"""The fold: from arrivals to revisions."""
