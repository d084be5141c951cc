"""The fetch of files.

- `addresses`: addresses in the web
- `lookup`: names as this machine's system knows them, in threads of their own
- `outbound`: the one way out to urls that users, models or documents name (D7)
- `web_names`: the name of a file from the web
"""
