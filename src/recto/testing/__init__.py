"""Public fakes for tests: a scripted model server and a server process. The product never imports this package."""
