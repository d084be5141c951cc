"""PDF pages: the text that xberg extracts, corrected with pdfium."""
