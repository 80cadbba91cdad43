"""The chat board of a task, and what is known of its project."""
