"""The conversation: what was said and shown, as values; what a client sends, what is stored of it, what readers get.

Pure: no clock, no network, no storage.

- `json`: JSON written one way, and its fields read
- `memo`: what was worked out of a value, kept on it
- `locale`: the wording of an agent's locale, and what clients call it
- `messages`: messages and what they are made of
- `log`: messages and markers in order, and the view that markers leave
- `state`: the state that a thread shares with its clients
- `document`: a document as its parser finds it
- `file_formats`: the table of formats of files, one row each
- `input_files`: the files of a user message under the ids the model knows
- `attachment`: attachments by their ids, in requests, messages and calls
- `input`: what clients send, from its JSON to entries of the log
- `interrupts`: calls that wait for a person to agree
- `next_step`: what a run does next
- `events`: what readers hear of a run, as values and as AG-UI
- `discard`: what readers hear of a reply that was lost
- `ui`: how results and answers can be shown
- `history`: what clients show of a thread later
- `snapshots`: a conversation told at once
- `title`: the title of a thread
"""
