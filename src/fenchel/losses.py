"""Log from hinge: which loss, which block gap, which concave term of the dual."""


class Log:
    """loss_i = log Z(s_i) − ⟨s_i, y_i⟩, H = entropy: logistic regression, maximum entropy, CRFs."""

    name = "log"

    def losses(self, structure, scores, y):
        """(n,) losses at the scores."""
        return structure.log_losses(scores, y)

    def block_gaps(self, structure, scores, y, mu):
        """(n,) KL(μ_i ‖ marginals at s_i), lepriol2018 (11)."""
        return structure.kl(mu, scores)

    def value_and_gap(self, structure, scores, y, mass, mu):
        """Σ m_i loss_i and Σ m_i · block gap, in one sweep."""
        return structure.log_value_and_gap(scores, y, mass, mu)

    def concave(self, structure, y, mu):
        """(n,) H_i(μ_i)."""
        return structure.entropies(mu)


class Hinge:
    """loss_i = max(s_i + cost_i) − ⟨s_i, y_i⟩, H = ⟨cost, μ⟩: SVMs, max-margin Markov networks."""

    name = "hinge"

    def losses(self, structure, scores, y):
        """(n,) losses at the scores."""
        return structure.hinge_losses(scores, y)

    def block_gaps(self, structure, scores, y, mu):
        """(n,) max(s_i + cost_i) − ⟨s_i + cost_i, μ_i⟩."""
        return structure.hinge_gaps(scores, y, mu)

    def value_and_gap(self, structure, scores, y, mass, mu):
        """Σ m_i loss_i and Σ m_i · block gap."""
        losses, gaps = self.losses(structure, scores, y), self.block_gaps(structure, scores, y, mu)
        return float(mass @ losses), float(mass @ gaps)

    def concave(self, structure, y, mu):
        """(n,) ⟨cost_i, μ_i⟩."""
        return structure.costs(y, mu)


LOSSES = {loss.name: loss for loss in (Log(), Hinge())}
