"""The built-in demo model: no key, no network, deterministic replies."""
