"""Files as tool calls show and change them."""
