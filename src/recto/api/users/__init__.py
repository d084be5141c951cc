"""Routes for user data."""
