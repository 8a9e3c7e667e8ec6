"""Tables of facts that users state."""
