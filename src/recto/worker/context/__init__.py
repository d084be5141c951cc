"""What a page is made of besides the log: who speaks, which tools there are, files, pictures, the quote.

- `prompt_context`: the prompt and tools of a page, and what is known of the user
- `thread_files`: files of the thread, for pages and for tools
- `pictures`: which pictures a page shows, by url or as bytes
- `quoted`: documents or a text that stand before the history
"""
