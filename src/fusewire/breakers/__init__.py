"""The five breakers of the seeds, one package each."""
