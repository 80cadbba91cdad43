"""Small numbers read off drawn bytes: far quicker to draw and shrink than one by one."""


class Dice:
    """Each call gives the next number below so many sides; 0 once the bytes are used up."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def __call__(self, sides: int) -> int:
        self.place += 1
        return self.data[self.place - 1] % sides if self.place <= len(self.data) else 0

    def left(self) -> bool:
        """Whether there are bytes yet."""
        return self.place < len(self.data)
