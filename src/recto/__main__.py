"""`python -m recto`: the same as the command `recto`."""

from recto.app import main

if __name__ == "__main__":
    main()
