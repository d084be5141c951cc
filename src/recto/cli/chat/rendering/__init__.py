"""Terminal rendering of runs. Pure: the same events at the same times give the same blocks."""
