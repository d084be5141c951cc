"""HTTP client for all outbound connections: models, gateway, fetched files, keys of issuers, and `recto.client`."""
