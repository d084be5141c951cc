"""The pool of parsing.

- `child`: the child that documents are parsed in
- `child_process`: one child process as its parent has it
- `confine`: A sandbox around children, by bubblewrap where it works
- `fair_queue`: whose document is next
- `frames`: what goes over the wire to a child and back
- `memory`: how much memory processes take, as Linux tells it
- `parsed_frames`: what of a child's frames is let through
- `parser_pool`: A pool of warm children that documents are parsed in (D7)
- `scratch`: A temporary folder for children, and the end of those that killed processes left
"""
