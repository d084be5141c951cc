"""File storage: a local folder or an S3 bucket."""
