"""The engine: recipe, graph, keys, store, ledger, session. It knows of no stage."""
