"""Provider message formats, encoded and decoded."""
