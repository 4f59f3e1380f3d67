"""Compute what a session has cost, from the transcripts that agents leave and a dated table of prices."""
