"""`recto replay`: sessions played call by call under policies of folding, and what each would have cost.

All but the command is pure: values in, values out.

- `replay_settings`: what a replay goes by
- `stretches`: a session as its calls were made, anew where the agent cut its own page
- `policies`: which messages stand otherwise in the page of each call
- `simulate`: how much of each page is in the provider's cache
- `evidence`: the lines that edits quote, and files that are read again
- `measure`: what comes of a session under each policy, and of several
- `policy_table`: what is shown to people
- `plot`: running price and page by call, as a picture
- `replay_command`: the command itself
"""
