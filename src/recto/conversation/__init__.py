"""The conversation of recto.

- `attachment`: attachments as the log and the store know them
- `document`: A document as its parser finds it
- `events`: events of a run as values, and as the AG-UI JSON that is stored and sent
- `fields`: reading fields of outside JSON
- `history`: history as clients show it (P13)
- `input`: ...
- `input_files`: files of a user message as the model is told of them
- `json`: JSON, one way
- `log`: the log
- `memo`: conversations grow at the end
- `messages`: A conversation as values
- `next_step`: what a run does next, told from the log and the run alone (DESIGN "The flow")
- `replay`: the events of a run that has ended, made from the log
- `title`: titles of threads
- `ui`: ...
"""
