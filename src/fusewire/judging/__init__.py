"""What the run of a test command says about one test: it passed, it failed, or it could not run."""
