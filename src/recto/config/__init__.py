"""What people write for Recto: files of settings, read with the line of each value, and the settings of the server.

- `problem`: what is wrong with a file somebody wrote, and where
- `yaml_values`: YAML as plain values, each with its line
- `frontmatter`: a Markdown file with settings between two lines of `---`
- `zones`: time zones by name, and the one this machine is in
- `checked`: values checked as a table, with every fault in its line; types that tables share
- `setting`: what a setting is: one field, with its default, a sentence and bounds
- `access_settings`: branches of the tree: who comes in, and how
- `file_settings`: branches: uploads, documents, fetching, pictures
- `run_settings`: branches: models, runs, events, the database
- `gateway_settings`: a branch: requests of other agents
- `settings`: the tree with every setting of the server, and every limit of a run
"""
