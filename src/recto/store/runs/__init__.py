"""Runs: admission, queue, steps, events, calls and savings."""
