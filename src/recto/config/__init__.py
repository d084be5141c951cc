"""What people write for Recto: files of settings, read with the line of each value, and the settings of the server.

- `problem`: what is wrong with a file somebody wrote, and where
- `yaml_values`: YAML as plain values, each with its line
- `frontmatter`: a Markdown file with settings between two lines of `---`
- `zones`: time zones by name, and the one this machine is in
- `checked`: values checked as a table, with every fault in its line; types that tables share
- `settings`: every setting of the server and every limit of a run, with bounds and default
"""
