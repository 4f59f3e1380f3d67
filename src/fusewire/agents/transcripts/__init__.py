"""What an agent did, step by step, read from the transcript that it leaves behind."""
