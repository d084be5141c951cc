"""The demo of models.

- `birth`: what the demo model finds of a birth in what people write
- `chart`: what the demo model reads out of a chart
- `choice`: which skill the demo model takes up, by the user's words
- `demo`: the built-in demo model
- `files`: what the demo model does with files
- `life`: what the demo model finds of somebody's life in what they write, to be saved
- `page`: the page as the demo model reads it
- `prompt`: what the demo model reads in an expert's system prompt
- `skills`: what the demo model has done in a skill
- `told`: what the demo model says in a skill
- `words`: what the demo model says to a page
"""
