"""What the constraint breaker alone needs: its state file, its archive, their seed's exact formats."""
