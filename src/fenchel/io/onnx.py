"""ONNX: a linear model as a graph that onnxruntime and others compute, in double precision.

    X (n, d) → MatMul → Add → scores (n, K) → ArgMax → Gather → label (n,)
                                └→ Softmax → probabilities (n, K)

Of two classes, whose weights are one vector w, the first has the score 0 and the second X w + b.
"""

from typing import NamedTuple

import numpy as np

from fenchel.io.files import open_output

OPSET, IR_VERSION = 17, 8  # of 2022: what is in use reads them


class OnnxModel(NamedTuple):
    """labels (K,); weights (K, d), intercepts (K,), of two classes one row, for the second; facts: notes."""

    labels: np.ndarray
    weights: np.ndarray
    intercepts: np.ndarray
    probabilities: bool
    facts: dict[str, str]


def write_onnx(path, model: OnnxModel) -> None:
    """Write a model; labels are strings or numbers."""
    content = _graph(model).SerializeToString()
    with open_output(path) as stream:
        stream.write(content)


def _graph(model: OnnxModel):
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise ImportError("ONNX needs the package onnx: pip install 'fenchel[onnx]' brings it") from None

    weights, intercepts = _of_each_class(model)
    labels = model.labels.astype(object if model.labels.dtype.kind in "OU" else model.labels.dtype)
    constants = {"weights": weights.T, "intercepts": intercepts, "labels": labels}
    nodes = [
        helper.make_node("MatMul", ["X", "weights"], ["products"]),
        helper.make_node("Add", ["products", "intercepts"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["number"], axis=1, keepdims=0),
        helper.make_node("Gather", ["labels", "number"], ["label"]),
    ]
    if model.probabilities:
        nodes.append(helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1))
    double, (K, d) = TensorProto.DOUBLE, weights.shape
    kind = helper.np_dtype_to_tensor_dtype(labels.dtype)
    graph = helper.make_graph(
        nodes,
        "fenchel",
        [helper.make_tensor_value_info("X", double, [None, d])],
        [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_tensor_value_info(
                "probabilities" if model.probabilities else "scores", double, [None, K]
            ),
        ],
        [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in constants.items()],
    )
    whole = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="fenchel", ir_version=IR_VERSION
    )
    helper.set_model_props(whole, model.facts)
    checker.check_model(whole)
    return whole


def _of_each_class(model):
    """Weights (K, d) and intercepts (K,) of every class."""
    if model.labels.size > 2:
        return model.weights, model.intercepts
    zeros = np.zeros_like(model.weights), np.zeros_like(model.intercepts)
    return np.vstack([zeros[0], model.weights]), np.concatenate([zeros[1], model.intercepts])
