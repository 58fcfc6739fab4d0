"""A trainer's side of a driven run of Rolldeck: asking for batches, taking them back, and a sign of life."""
