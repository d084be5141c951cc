"""The HTTP API: routes, bodies, streams, problems, credentials. Refuses SQL, models and decisions.

In the order a request meets them, and then what they share:

- `listen`: the server that listens, and stops in the order that loses nothing
- `connections`: connections, and what each may cost before its request is known
- `server`: the application, with all its routes
- `access`: who is let in
- `codings`: content codings, of bodies that come packed and of answers
- `router`: who answers a request, by its path and its method
- `route`: a route, with all that describes it
- `parameters`: parameters of paths, queries and headers
- `bodies`: request bodies
- `backend`: who asks, and what the routes lead to
- `runs`: routes of runs, and their admission
- `threads`: routes of threads, their history and their model calls
- `files`: routes of attachments, files and datasets
- `users`: routes of a user's profile, and of all there is of them
- `ops`: routes of agents, and for whoever runs the server
- `gateway`: routes of the gateway, for agents of others
- `copilotkit`: CopilotKit's own routes
- `signed`: signed urls of files, for history and events
- `problems`: refusals, as `application/problem+json`
- `description`: the description of the API, as OpenAPI
- `docs_page`: the same as a page
- `web_page`: the web page at `/`, as it was built
- `home_page`: what is at `/` where it is not built
"""
