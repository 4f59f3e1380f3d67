"""Read what an agent did, step by step, from the transcript that it leaves."""
