"""Programs that stand on their own: ``python -m compactla.examples.NAME``."""
