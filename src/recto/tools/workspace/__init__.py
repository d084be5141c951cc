"""Workspaces: a folder for each thread.

- `workspaces`: which folder is whose, who may add to it now, and its end
- `workspace_files`: files written inside a workspace, and never outside
- `sandbox_fetch_user_file`: the tool that puts an upload into the workspace
"""
