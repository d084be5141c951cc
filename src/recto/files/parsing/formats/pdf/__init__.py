"""Pages of a PDF: what xberg finds, mended by what pdfium sees.

- `pdf_document`: the pages, a few first and then more at a time
- `pdfium`: a page as pdfium sees it
- `annotations`: fields, comments and typed words on top of a page
- `columns`: tables by where words stand
- `missed`: lines that xberg left out
- `right_to_left`: Arabic and Hebrew in the order they are read
- `ocr`: scans read by tesseract
"""
