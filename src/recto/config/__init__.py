"""Files that people write: Markdown with settings in YAML, each value with its line. Refuses to know what they mean.

- `checked`: values that people wrote, checked as a table
- `frontmatter`: A Markdown file with settings between two lines of `---`
- `problem`: what is wrong with a file somebody wrote, and where
- `yaml_values`: YAML as plain values, each with its line
- `zones`: time zones by name, and the one this machine is in
"""
