"""The evaluation of five papers, run again: `python -m experiments`, see README.md here."""
