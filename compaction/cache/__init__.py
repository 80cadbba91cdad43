"""What a provider's prompt cache holds, what broke it, and what that costs."""
