"""Attempts at failing tests (seed 004): counted per test and slice, with a checkpoint to go back to and a report."""
