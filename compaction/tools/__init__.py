"""Tools of an agent: what each needs first, what follows which, what failed."""
