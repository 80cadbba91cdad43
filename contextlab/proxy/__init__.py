"""A proxy for model providers: records sessions, and sends managed contexts if asked to."""
