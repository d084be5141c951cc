"""OpenTelemetry spans of runs. Off by default."""
