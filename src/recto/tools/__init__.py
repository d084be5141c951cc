"""Tools of agents: one module per tool, one place that bounds output."""
