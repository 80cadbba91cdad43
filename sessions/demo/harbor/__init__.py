"""A harbor's booking system that exists only in this demo, and agents that work on it."""
