"""How many predictions of a model are proven, for `evaluate`."""

from fenchel.report.tables import Told


def proven_facts(model, X) -> dict:
    """The line of `evaluate`: how many predictions the exact optimum makes too, or why none is proven."""
    try:
        proven = model.proven(X)
    except ValueError as error:
        return {"proven": Told(None, f"none: {error}")}
    count, radius = int(proven.sum()), model.certificate_.radius
    words = f"{count} of {proven.size} predictions are those of the exact optimum"
    words += f" (its weights are within {radius:.2g})"
    return {"proven": Told({"count": count, "of": proven.size, "radius": radius}, words)}
