"""What an agent can do, one file per tool, with one place that bounds output. Refuses to know who is asking."""
