"""What is told again at the end of a context."""
