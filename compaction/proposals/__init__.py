"""The interface of strategies: what they see, and what they propose."""
