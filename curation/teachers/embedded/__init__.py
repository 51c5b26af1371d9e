"""The embedded teacher: sentence embeddings, labelled seeds, the domain file and rules; no network, no key."""
