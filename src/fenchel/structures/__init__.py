"""Label structures: who sums, maximises and measures entropy over the outputs of an example."""
