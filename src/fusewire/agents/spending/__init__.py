"""What a session has cost, from the transcripts that agents leave behind and a dated table of prices."""
