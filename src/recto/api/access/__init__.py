"""Authentication, rate limits and CORS."""
