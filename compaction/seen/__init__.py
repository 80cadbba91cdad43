"""What a session shows: files, terminals, todos, repeats, checks, and what people said."""
