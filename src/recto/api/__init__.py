"""HTTP only: routes, bodies, streams, problems, auth. Refuses SQL, models and decisions.

- `access`: ...
- `backend`: what the routes lead to, and who asks
- `bodies`: request bodies
- `codings`: content codings
- `connections`: connections and what each may cost before its request is known
- `docs_page`: the API's description
- `files`: ...
- `listen`: listening
- `ops`: ...
- `problems`: refusals as `application/problem+json`
- `route`: A route and its description
- `runs`: ...
- `server`: the HTTP surface
- `shapes`: what bodies look like, for the description of the API
- `signed`: urls of files as clients get them in history and events
- `threads`: ...
- `users`: ...
"""
