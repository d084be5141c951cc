"""Gateway routes (X3): the paths of the provider APIs, for other agents."""
