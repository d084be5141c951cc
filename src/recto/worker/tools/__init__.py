"""Tool calls: parse them from model text if necessary, validate, run, store the results."""
