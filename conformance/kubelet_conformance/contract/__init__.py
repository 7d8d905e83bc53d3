"""The frame contracts are written in, and the engine that judges by them."""
