"""Tools without files: time, arithmetic, skills, earlier results.

- `current_time`: the tool that knows what time it is
- `calculator`: the tool that calculates
- `use_skill`: the tool that takes up a skill
- `read_skill_file`: the tool that reads what a skill brings along
- `recall`: the tool that gives back what was folded or summarised
"""
