"""One verifier per IR: it states the invariants and checks them."""
