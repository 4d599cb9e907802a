"""The C headers whose parts emitted programs hold (``codegen/targets/library.py``)."""
