"""Tenure: memory with a lifetime that you choose.

Arena   blocks that end together: a request, a document, a frame
"""

from tenure._core import Arena, Block, Blocks, Mark, StaleBlockError
from tenure._stats import Stats

__all__ = ["Arena", "Block", "Blocks", "Mark", "StaleBlockError", "Stats"]
__version__ = "0.1.0"
