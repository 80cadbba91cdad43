"""The chat board of a task, and facts about its project."""
