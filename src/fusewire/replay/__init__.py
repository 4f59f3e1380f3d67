"""Run sessions of the past through the guard, the constraints and the breakers, to see what they would have done."""
