"""`recto replay`: replays recorded sessions call by call under each folding policy and compares the cost.

Everything except the command itself is pure.
"""
