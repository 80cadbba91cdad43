"""Wires the parts together: settings, addresses, servers, the `contextlab` command."""

__version__ = "0.1.0"
