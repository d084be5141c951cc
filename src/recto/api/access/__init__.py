"""Access: who is let in, how often, and what browsers may do with an answer.

- `gate`: what every request has to pass
- `auth`: credentials: the local token, API keys, JWTs
- `jwt`: JWTs, their keys and their claims
- `jwks`: keys of an issuer, fetched by their url
- `rate`: how often somebody may come
- `browsers`: headers for browsers: origins that may ask (CORS), and what keeps an answer from doing harm
- `sdk_refusals`: refusals of the gateway, as SDKs of providers expect them
- `audit`: log lines of refused access
"""
