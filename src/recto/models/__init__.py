"""The only room that talks to model providers: protocol, endpoint, auth. Refuses to decide what is sent."""
