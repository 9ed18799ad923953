"""How weights become scores of parts, and back: the kernels behind A_i and A_iᵀ."""
