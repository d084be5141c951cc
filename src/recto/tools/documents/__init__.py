"""The documents of tools.

- `document_parts`: A part of a document as a model gets it
- `document_rows`: parts of documents as JSON that is never cut
- `read_documents`: the tool that reads all documents of a thread at once (D4, D5), for agents that name it
- `read_files`: the tool that reads uploads (F5)
- `read_many`: documents as tools read them
"""
