"""One verifier per landing: it states the invariants and checks them."""
