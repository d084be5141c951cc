"""Spreadsheets, sheet by sheet.

- `spreadsheet`: the sheets of any format
- `workbook`: an xlsx from its own XML
- `number_formats`: numbers as a person sees them
- `old_books`: numbers of an xls as they are shown
- `ods`: an ods made ready for xberg
"""
