"""A pool of child processes that documents are parsed in.

- `parser_pool`: the pool: a document in, its frames out
- `fair_queue`: whose document is next
- `scratch`: temporary files of the pool
- `confine`: a sandbox around children, where bubblewrap works
- `child_process`: one child as its parent has it
- `child`: the child itself
- `memory`: how much memory processes take
- `frames`: what goes over the wire to a child and back
- `parsed_frames`: what of a child's frames is let through
"""
