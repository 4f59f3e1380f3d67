"""Locate `fusewire serve`, and check that it is the right server before a token is sent."""

from __future__ import annotations

import hmac

#: The default port: FUSE on the keys of a telephone.
PORT = 3873

#: Headers by which a client asks a server whether it knows the token of the hooks, and by which it answers.
QUESTION, PROOF = "Fusewire-Question", "Fusewire-Proof"


def proof(token: str, port: int, question: str) -> str:
    """The answer that only a holder of the token can give, and that is another one on another port.

    It shows that the server can read a file of this user, which another user's program cannot; the user's own
    programs can, agents among them.
    """
    return hmac.new(token.encode("utf-8", "replace"), f"{port} {question}".encode(), "sha256").hexdigest()
