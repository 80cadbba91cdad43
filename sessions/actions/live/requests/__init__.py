"""What people and agents ask for between steps: compactions, undo, pins, pauses."""
