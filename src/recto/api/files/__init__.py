"""Routes for attachments, signed urls and datasets."""
