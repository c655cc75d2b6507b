"""What becomes of the KV of who gave way."""

from __future__ import annotations

from typing import Literal

Mode = Literal["recompute", "swap"]
"""`recompute`: it is lost, but for what the prefix index holds. `swap`: it goes to the host, where there is room."""
