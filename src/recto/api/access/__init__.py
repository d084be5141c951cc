"""The access of api.

- `audit`: one log line for each refused access
- `auth`: who is let in (C3)
- `browsers`: headers that keep browsers from doing harm with an answer
- `gate`: who may come in, and how (C3)
- `jwks`: keys of an issuer by their url (JWKS)
- `jwt`: JWTs
- `rate`: how often somebody may come
"""
