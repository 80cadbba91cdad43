"""Facts that an agent reads and needs later, and which blocks hold them."""
