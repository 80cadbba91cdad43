"""What a compaction lost."""
