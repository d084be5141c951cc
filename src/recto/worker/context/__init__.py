"""The context of worker.

- `client_words`: A client's system and developer messages
- `pictures`: which pictures a page shows, by url or as bytes
- `prompt_context`: the stage a page is set on (S1)
- `quoted`: what stands in the quote of a run's pages (D2)
- `thread_files`: the files of a run's thread
"""
