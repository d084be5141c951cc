"""Relay of other agents' requests (X3): repair, fold, store, forward, stream the reply back."""
