"""Presentations and drawings, slide by slide.

- `presentation`: the slides of any format
- `deck`: a pptx from its own XML
- `old_slides`: tables of a ppt
- `drawing`: an odp or odg from its own XML
"""
