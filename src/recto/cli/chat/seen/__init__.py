"""What runs look like in a terminal. Pure: the same events at the same times are the same blocks.

- `live_run`: events as a state, and what is settled by them
- `markdown_blocks`: an answer in blocks, those that are whole and the one that is not
- `block_views`: how blocks and calls look
- `answer_markdown`: Markdown as it looks
- `chat_words`: what the terminal says to people
- `held_output`: what is written, in whole frames
"""
