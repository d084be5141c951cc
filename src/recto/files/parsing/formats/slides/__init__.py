"""The slides of formats.

- `deck`: A pptx from its own XML
- `drawing`: the slides of an odp and the pages of an odg, from their own XML
- `old_slides`: tables on the slides of a ppt, by where their cells stand
- `presentation`: presentations
"""
