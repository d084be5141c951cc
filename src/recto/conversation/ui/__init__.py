"""The `uiSchema` of messages (P14), compiled from the hints in results and answers."""
