"""What the model was shown: files, terminals, todos, repeats."""
