"""What operators see: processes and storage."""
