"""The four pillars (八字) of a birth and the derived readings."""
