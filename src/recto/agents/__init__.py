"""Agents: folders with `AGENT.md`, tools and skills, loaded into values."""
