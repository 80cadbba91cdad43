"""New topics: whether a message goes on with what was said before."""
