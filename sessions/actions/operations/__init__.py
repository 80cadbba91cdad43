"""What operators do and see."""
