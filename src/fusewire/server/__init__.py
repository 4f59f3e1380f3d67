"""The dashboard, the JSON interface, the metrics and the HTTP hooks: the extra `fusewire[server]`."""

from __future__ import annotations

#: Where it listens unless it is told otherwise: FUSE on the keys of a telephone.
PORT = 3873
