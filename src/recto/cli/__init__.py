"""The `recto` command: reads arguments, calls the rooms below, prints. Decides nothing about pages."""

from __future__ import annotations


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 wrong use."""
    from recto.cli.commands import app  # here, so that importing the package does not load the command line

    app()
