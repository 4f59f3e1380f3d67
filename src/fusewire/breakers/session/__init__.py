"""The session breakers (seed 002): loops of tool calls, agents, spend and memory inside a session."""
