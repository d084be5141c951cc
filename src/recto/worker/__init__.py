"""The only room that loops: claim a run, call the model, run its tools. Refuses to know SQL, HTTP or a vendor."""
