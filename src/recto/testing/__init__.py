"""Fakes for tests: model servers, databases, storages, whole servers. Refuses to be imported by the product.

- `model_answers`: answers of a scripted model, as values
- `openai_answers`: as OpenAI chat completions stream them
- `responses_answers`: as OpenAI Responses stream them
- `anthropic_answers`: as Anthropic messages stream them
- `gemini_answers`: as Gemini's generateContent streams them
- `answer_bytes`: their bytes on each wire
- `model_server`: a model server that answers from a script
- `process`: a Recto server as a process of its own
- `warm_process`: processes forked from one that has imported the server
- `kept_streams`: what was read of runs, kept for stock clients to read it again
- `client`: a plain client of such a server
- `crashing`: a server that ends itself as `kill -9` would, at a named point of a run
- `postgres`: a real PostgreSQL
- `s3`: a real storage that speaks S3
"""
