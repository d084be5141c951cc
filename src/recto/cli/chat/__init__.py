"""`recto chat`: an agent in the terminal. It asks a server through the public API, and decides nothing about pages.

- `chat_command`: the command and its options
- `local_server`: the server of a data folder, joined or started
- `thread_api`: what is asked of a server
- `one_answer`: a question that is answered once
- `chat_terminal`: the terminal put together
- `chat_session`: a conversation: runs that are followed, and what is shown of them
- `slash_commands`: messages and commands
- `approvals`: calls that wait for a person
- `screen`: the screen, its keys and what is asked on it
- `completing`: what may complete a word
- `typed`: what was typed
- `chat_settings`: limits of the terminal
- `seen`: what runs look like
"""
