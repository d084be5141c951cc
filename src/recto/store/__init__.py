"""The store: log, threads, runs, events, files, users. The only package with SQL."""
