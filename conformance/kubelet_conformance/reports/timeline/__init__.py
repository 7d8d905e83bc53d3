"""What a trace shows over time, as lanes of calls and events: the model of every picture of a trace."""
