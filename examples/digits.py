"""Train, certify and show: which of scikit-learn's handwritten digits are odd?

Run by `make demo`. Trains the same model with four solvers, prints each certificate, and draws a digit
with the model's opinion of it.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from fenchel import LogisticRegression

SHADES = " .:-=+*#%@"


def draw(image):
    """An 8 × 8 image of values 0 to 16 as lines of characters."""
    return "\n".join("  " + "".join(SHADES[int(v * 9 / 16)] * 2 for v in row) for row in image)


def main():
    X, digit = load_digits(return_X_y=True)
    X, y = X / 16.0, digit % 2
    train_X, test_X, train_y, test_y = train_test_split(X, y, random_state=0)
    print(f"Odd or even: {train_X.shape[0]} images to train on, {test_X.shape[0]} to test on.\n")
    for solver in ("newton", "cd-dual", "lbfgs", "sdca"):
        # A solver's first fit compiles its kernels; later processes load them. It is not timed below.
        LogisticRegression(solver=solver).fit(train_X[:50], train_y[:50])
        model = LogisticRegression(C=1.0, solver=solver, tol=1e-6).fit(train_X, train_y)
        print(f"{solver:>8}  test accuracy {model.score(test_X, test_y):.4f}  {model.certificate_}")
    odd = model.predict_proba(test_X[:1])[0, 1]
    truth = "odd" if test_y[0] else "even"
    print(f"\nThe first test image is odd with probability {odd:.3f} (truth: {truth}):\n")
    print(draw(test_X[0].reshape(8, 8) * 16))


if __name__ == "__main__":
    main()
