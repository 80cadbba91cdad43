"""Lists in docs/, and the recipes of docs/extending.md, from and for this checkout."""
