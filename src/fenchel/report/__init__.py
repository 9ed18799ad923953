"""Pictures of runs, drawn from their traces."""
