"""HTTP client for all outbound connections: models, gateway, fetched files, token issuers' keys, and `recto.client`."""
