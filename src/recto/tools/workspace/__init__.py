"""The workspace of tools.

- `sandbox_fetch_user_file`: the tool that puts an upload of any kind into the thread's workspace (F9)
- `workspace_files`: files in a workspace, a thread's own folder
- `workspaces`: the folders threads work in
"""
