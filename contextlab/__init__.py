"""Project package: settings, routes, servers, and the `contextlab` command."""
