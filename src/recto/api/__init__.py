"""HTTP only: routes, bodies, streams, problems, auth. Refuses SQL, models and decisions."""
