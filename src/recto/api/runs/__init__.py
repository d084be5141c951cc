"""Routes that start runs and stream their events."""
