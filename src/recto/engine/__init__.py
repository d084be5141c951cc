"""Dispatch of runs to workers and delivery of events to readers. A wake-up is a hint; the run row is the truth."""
