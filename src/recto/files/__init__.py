"""Attachments: storage, signing, types, parsing, outbound fetching. Refuses to parse in our own process."""
