"""The generator behind ``make_log.py``: vocabulary, frames, noise, sampling, truth."""
