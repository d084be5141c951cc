"""The formats of parsing.

- `archive`: what stands in the containers of documents
- `counting`: numbers as lists count with them, and which item has which
- `docx`: the numbers of a docx, counted as its numbering.xml says
- `extraction`: what xberg finds in a document
- `letters`: documents without pages that count
- `ole`: streams of the container that old Office programs write
- `opendocument`: ...
- `package`: parts of an office package, and where their ids lead
- `parse`: the parser of each format
- `pdf`: ...
- `rtf`: an rtf made ready for xberg, which loses notes, rare characters, and where wide cells end
- `sheets`: ...
- `slides`: ...
- `tables`: rows of cells as tables in Markdown, a piece at a time
- `text`: ...
- `unpaged`: elements of a document without pages that count, as frames of a size
- `xberg_nodes`: elements of the nodes that xberg finds
"""
