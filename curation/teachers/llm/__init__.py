"""Teachers behind an OpenAI-compatible chat endpoint: the client that asks, and the jobs it is asked to do.

The client, from what a job sees down to the wire:

| module | question |
|---|---|
| `client` | requests in, outcomes out, in the thread of the caller |
| `ask`, `batch` | how are many requests carried through at once: one by one, or by the endpoint's batches? |
| `dialogue`, `reading` | what follows from a reply: an answer, a repair, a higher limit, a failure? (pure) |
| `calls` | is the answer known, may it be asked for, what is done about a fault? |
| `cache`, `limits`, `cost` | what was said and spent, when may a call start, what may it cost? |
| `endpoint`, `faults` | how is it said to this endpoint, and what does its response mean? |
"""
