"""What models cost."""
