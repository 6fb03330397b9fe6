"""What grading costs. Run as ``python -m bench.against_nbgrader`` and ``python -m bench.scale``."""
