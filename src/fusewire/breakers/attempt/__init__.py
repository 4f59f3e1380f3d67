"""The attempt breaker (seed 004): attempts at failing tests, and the scope of a slice."""
