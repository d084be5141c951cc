"""Files fetched from urls that users, models or documents name (D7).

- `addresses`: which urls, hosts and addresses may be asked
- `lookup`: what a host's name stands for
- `outbound`: the fetch itself, from public addresses only
- `web_names`: what a fetched file is called
"""
