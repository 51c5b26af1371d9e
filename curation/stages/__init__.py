"""One module a stage: thin, reads tables, calls algorithms, writes tables."""
