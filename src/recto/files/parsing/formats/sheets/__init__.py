"""The sheets of formats.

- `number_formats`: numbers of a sheet as a person sees them
- `ods`: an ods made ready for xberg, which takes numbers for what is shown and drops where links lead
- `old_books`: numbers of an xls that are shown as parts of a hundred or with zeros in front
- `spreadsheet`: spreadsheets
- `workbook`: an xlsx from its own XML
"""
