"""From tokens and events to the sparse rows that models are trained on."""
