"""How often Python looks for cyclic garbage in processes that run for long."""

import gc


def collect_less() -> None:
    """Leaves out what is loaded by now, and looks through the rest less often.

    Folds and rendered contexts are many thousand objects without cycles: looking for some took 40 %
    of what a GET of a context costs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)  # allocations; then times the generation before
