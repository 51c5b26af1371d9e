"""The machine that a run has."""

from __future__ import annotations

import subprocess
import sys

# Blocks too small to be mapped one by one, freed but for the last: the allocator keeps them all.
FREED = """
import ctypes, sys
from curation.engine.machine import give_back_memory

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(100_000) for _ in range(2_000)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:
    libc.free(block)
before = held()
give_back_memory()
print(before - held())
"""


def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    run = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(run.stdout) > 150_000  # KiB, of 195,000
