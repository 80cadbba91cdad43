"""Garbage collection settings for long-running processes."""

import gc


def collect_less() -> None:
    """Freeze the objects loaded so far, and collect less often.

    Folds and rendered contexts consist of many thousand objects without cycles; collecting took 40
    % of the time of a GET of a context.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)  # allocations, then multiples of the younger generation
