"""Workspaces: a folder for each thread.

- `workspaces`: which folder is whose, who may add to it now, and its end
- `workspace_files`: files written inside a workspace, and never outside
- `open_path`: the safe way to what a path names, links included
- `listing`: what is in a folder, without what `.gitignore` names
- `filesystem_read`: the tool that reads files and lists folders
- `filesystem_create`: the tool that makes a new file
- `filesystem_edit`: the tool that changes a file by search and replace
- `ignored`: what of a folder is listed: all that its `.gitignore` files do not leave out
- `plain_search`: a search without ripgrep, with the same results
- `ripgrep`: ripgrep as a child process, and what it found
- `ace_text_search`: the tool that finds lines in the workspace
- `snapshots`: files as they were before a turn changed them
- `restore_files`: files put back, and a workspace copied for a fork
- `sandbox_fetch_user_file`: the tool that puts an upload into the workspace
"""
