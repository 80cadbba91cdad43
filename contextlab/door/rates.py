"""A rate per second, with a burst."""

from __future__ import annotations

BURST_SECONDS = 4.0
"""How much may come at once: what this many seconds allow."""


class Bucket:
    """A token bucket of `rate` per second; full at first."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._left = rate * BURST_SECONDS
        self._at = 0.0

    def take(self, amount: float, now: float) -> float:
        """Take an amount, or return the seconds after which to try again (0 if it was taken).

        An amount above the burst is taken from a full bucket, which then stays empty for longer.
        """
        burst = self.rate * BURST_SECONDS
        self._left = min(burst, self._left + self.rate * (now - self._at)) if self._at else burst
        self._at = now
        if self._left < min(amount, burst):
            return (min(amount, burst) - self._left) / self.rate
        self._left -= amount
        return 0.0
