"""Commands of agents: run in the thread's folder, in a sandbox where one works, within limits.

- `clean_text`: what a command printed, as text for a model
- `answer`: what the model is told of a command, within its characters
- `processes`: what a process has started, and the memory of it all
- `masks`: what keeps commands from what is guarded or hidden in a workspace
- `confinement`: the words that run a command, in a sandbox or without
- `placeholders`: what stands in the place of guarded things that are not there
- `whole_output`: files in the workspace that hold all that was printed
- `output`: what a command prints, while it runs
- `running_command`: one command, from its start to its end
- `terminal`: the commands and jobs of a server
- `terminal_execute`: the tool that runs a command
- `terminal_jobs`: the tool that looks at jobs and ends them
"""
