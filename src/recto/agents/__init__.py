"""Load an agent folder (AGENT.md and its skills) into values. Refuses to run it: that is the worker."""
