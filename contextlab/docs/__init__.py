"""Lists in docs/, and docs/recipes, from and for this checkout."""
