"""The `recto` command: reads arguments, calls the rooms below, prints. Decides nothing about pages."""
