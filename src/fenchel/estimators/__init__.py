"""Estimators in scikit-learn's manner: they check a user's arrays, call `solve`, and keep the answer."""
