"""Teachers behind an OpenAI-compatible chat endpoint: the client that asks, and the jobs it is asked to do."""
