"""Memory settings of long-running processes."""

import ctypes
import gc
import sys

ARENAS = 2
"""Heaps of the C library. It makes up to eight for each processor, one for each busy thread, and
what a thread frees is of use to that thread only."""

_M_ARENA_MAX = -8
"""As in glibc's malloc.h."""


def share_heaps() -> None:
    """Make threads share a few heaps; call it before threads start. Does nothing without glibc."""
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallopt"):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Return freed memory to the system. Does nothing without glibc."""
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)


def collect_less() -> None:
    """Freeze the objects loaded so far, and collect less often.

    Folds and rendered contexts consist of many thousand objects without cycles; collecting took 40
    % of the time of a GET of a context.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)  # allocations, then multiples of the younger generation
