"""The pdf of formats.

- `annotations`: what was put on top of a page of a PDF
- `columns`: tables without lines, by where words stand on a page
- `missed`: lines that pdfium sees on a page and xberg left out, put where they belong
- `ocr`: reads pictures of pages with tesseract, where it is installed
- `pdf_document`: PDFs, a few pages first and then more at a time
- `pdfium`: A PDF as pdfium sees it
- `right_to_left`: lines of Arabic and Hebrew, with Latin words in them, in the order they are read
"""
