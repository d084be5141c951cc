"""Schema migrations, one module per step. A released step is never edited."""
