"""The HTTP API: routes, bodies, streams, problems, authentication. Contains no SQL and no model calls."""
