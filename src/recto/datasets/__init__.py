"""Knowledge bases: ingest, index, search. Refuses to write what it finds into a page."""
