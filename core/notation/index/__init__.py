"""Index expressions and their schedules."""
