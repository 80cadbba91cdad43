"""What programs ask for: JSON over /api/v1."""
