"""Schedules as values: read, printed, applied and chosen."""
