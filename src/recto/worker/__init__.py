"""The run loop: claim a run, load it, take one step after another until it ends."""
