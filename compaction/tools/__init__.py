"""Tools of an agent: dependencies, habits, failures and drift."""
