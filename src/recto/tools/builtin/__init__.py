"""The builtin of tools.

- `calculator`: the tool that calculates
- `current_time`: the tool that knows what time it is
- `read_skill_file`: the tool that reads what a skill brings along (S5)
- `use_skill`: the tool that chooses a skill (S3)
"""
