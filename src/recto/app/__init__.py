"""The composition root: the only room that wires the others together. Refuses to hold any other logic.

- `run_server`: a server from its settings, and in which order things begin and end
- `check_server`: what would keep a server from starting, and what it would serve
- `agents`: agents with their tools and models
- `external`: tools that live elsewhere
- `thread_folders`: where threads work, and what of the server is out of their reach
- `files`: storage, signing, reading of documents, uploads
"""
