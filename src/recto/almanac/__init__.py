"""What calendar, sky and cards say: pillars, charts, spreads, all computed from values. Refuses to know who asks."""
