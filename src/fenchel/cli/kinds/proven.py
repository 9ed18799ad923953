"""How many predictions of a model are proven, for `evaluate`."""


def proven_facts(model, X) -> dict:
    """The line of `evaluate`: how many predictions the exact optimum makes too, or why none is proven."""
    try:
        proven = model.proven(X)
    except ValueError as error:
        return {"proven": f"none: {error}"}
    count = f"{proven.sum()} of {proven.size} predictions are those of the exact optimum"
    return {"proven": f"{count} (its weights are within {model.certificate_.radius:.2g})"}
