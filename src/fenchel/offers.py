"""What a problem gives to a solver, beyond its plain value; a solver's `needs` are checked against this.

log, hinge     the loss                                descent      P and its subgradient of least norm
gradient       P and ∇P                                hessian      products with ∇²P
matrix         ∇²P itself, or one like it              surrogates   the matrices of SM
columns        the features weight by weight           blocks       the kernels of structures/base
outcomes       outputs few enough to list              vertices     outputs worth a plane each
entropy        H out of marginals                      dual         there is one: an L2 term
bound          a dual, or of sequences an L1 term: mixtures with the truth have one
l2             no L1 term: weights move where gradients point
sequences      outputs are labels of sequences
"""

from fenchel.structures.base import Structure
from fenchel.structures.binary import Binary
from fenchel.structures.chain import Chain
from fenchel.structures.crossed import Crossed
from fenchel.structures.joint import Joint
from fenchel.structures.junction import Junction
from fenchel.structures.projective import Projective

STRUCTURES = (Binary, Crossed, Joint, Chain, Junction, Projective)

REGULARISED = frozenset({"dual", "bound"})  # what an L2 term adds
WITH_LOG = frozenset({"log", "descent", "gradient", "blocks", "l2"})
WITH_HINGE = frozenset({"hinge", "blocks", "entropy", "l2"})  # the dual is linear: no entropy is asked for
WITH_L1 = frozenset({"log", "descent", "columns", "blocks", "outcomes", "entropy"})


def offered(structure: Structure | type[Structure], loss) -> frozenset:
    """What a structure gives under a loss, without a regulariser."""
    if loss.hinge:
        return WITH_HINGE | (structure.offers & {"outcomes", "matrix", "vertices", "sequences"})
    return WITH_LOG | (structure.offers - {"vertices"})
