"""How templates write figures."""
