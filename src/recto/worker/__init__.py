"""Work on a run: claimed, loaded, one step after another until it ends. Refuses to know SQL, HTTP or a vendor.

- `loop`: takes up a claimed run and does what is next until nothing is
- `runtime`: what all runs of a process work with
- `load_run`: a run from its row, its log and its input
- `log_cache`: logs this process has read lately
- `run_spans`: spans of a run, its model calls and its tools
- `run_state`: a run's row and counters while it is worked on
- `page_inputs`: what its pages are made of besides the log
- `log_writer`: its log, and the one way to write
- `context`: what a page is made of besides the log: prompt, tools, files, pictures, quote
- `model`: calls of the model: the reply, a summary, a title
- `tools`: calls of tools, from the model's text to their results
- `gateway`: requests of other agents, which are no runs of ours
- `recorder`: events of a run, merged, numbered, committed, published
- `account`: tokens a run used, and their price
- `preview`: the page that a run would send first, for whoever wants to see it
- `finish`: how a run ends, and what its readers get last
"""
