"""File types, determined from name and first bytes. `recto.conversation.file_formats` holds the table of formats."""
