"""The HTTP door: who may enter, in what order, and the thread in which Django answers."""
