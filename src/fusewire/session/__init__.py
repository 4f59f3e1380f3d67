"""Inside a session: what an agent's tool calls add up to. The hook asks here before and after each of them."""
