"""Summaries of history: prompts, forms, validation and the extractive summarizer."""
