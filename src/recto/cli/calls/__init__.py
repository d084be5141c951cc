"""Model calls in the terminal, read from the data of a server.

- `explain_run`: `recto explain`
- `try_agent`: `recto agents try`
- `thread_views`: `/context` and `/explain` of the terminal, asked of a server
- `page_views`: what people are shown of a page: of a call, and of the next one
- `call_report`: the parts of these views
- `call_words`: their words, in English and in Chinese
"""
