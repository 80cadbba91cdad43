"""What agents get besides the context: the next call, recitations, originals read back."""
