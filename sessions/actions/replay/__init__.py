"""What a page of a replay needs besides stored figures."""
