"""The only room with SQL: log, threads, runs, events, profiles. Refuses to edit the log: it only appends."""
