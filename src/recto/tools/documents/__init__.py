"""Tools that read the documents of a thread.

- `read_files`: documents by file id, a part at a time (F5)
- `read_documents`: all documents at once (D4, D5), for agents that name it
- `read_many`: several documents read at once, with progress
- `document_parts`: a part of a document, as a model gets it
"""
