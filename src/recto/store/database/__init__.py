"""Database connections and transactions."""
