"""Spans of runs, for people who run Recto and have somewhere to send them. Decides nothing, and is off by default.

- `span_names`: what spans, their attributes and their events are called
- `spans`: a span and who begins one, where nobody records any
- `otlp`: spans that are sent to a collector by OpenTelemetry
"""
