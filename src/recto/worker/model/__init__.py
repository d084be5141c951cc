"""Model calls: store the page, send it, stream the reply into events and log entries."""
