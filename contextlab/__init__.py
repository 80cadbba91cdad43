"""Project package: settings, routes, servers, and the `contextlab` command."""

__version__ = "0.1.0"
