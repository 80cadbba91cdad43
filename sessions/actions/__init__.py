"""Every write: one transaction each, then a hint to the live pages."""
