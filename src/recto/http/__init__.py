"""HTTP client for all outbound connections: models, gateway, fetched files, keys of token issuers, and `recto.client`."""
