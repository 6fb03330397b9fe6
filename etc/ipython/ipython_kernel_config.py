"""What kernels of this environment leave unsaid; installed as etc/ipython/ in it."""

import logging


def _is_news(record: logging.LogRecord) -> bool:
    """Each kernel warns, on the terminal and in a notebook that is built, that it talks to the
    programs of its own machine as kernels always did. Nobody who reads that can act on it."""
    return not str(record.msg).startswith("Kernel is running over TCP without encryption")


logging.getLogger("IPKernelApp").addFilter(_is_news)
