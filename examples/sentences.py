"""Where does a sentence end? A maximum entropy model of full stops, after Reynar and Ratnaparkhi (1997).

Trains on a small text of its own, certifies the model, cuts new text into sentences and explains a decision.
"""

from fenchel import MaxEnt

# A line is a sentence.
TEXT = """
Dr. Weber came at 8 a.m. and left before noon.
She had read the report by Prof. Lind.
It was four pages long.
The bridge over the Elbe is closed.
Trucks from Novak Ltd. take the road by St. Florian.
Mr. Novak pays approx. 40 euros more a day.
Nobody told Mrs. Okafor.
She lives in No. 12, next to the mill.
The mill was sold in Jan. and again in Dec. of that year.
Who bought it is not known.
Some say Acme Inc. did.
Others name a bank, i.e. the one on the square.
The town clerk, Mr. Ruiz, keeps the papers.
He showed them to Dr. Weber.
There were maps, letters etc. in three boxes.
None had a date.
One was signed by Capt. Moreau.
He died in 1871.
The harbour was built later, ca. 1890 or so.
Ships went to St. Ives twice a week.
They carried salt, wool, fish etc. and came back with coal.
A ticket cost 2 s. and a cabin twice as much.
Prof. Lind found the price list, cf. page 9 of her book.
The book is out of print.
Ask Mrs. Okafor for a copy.
She opens at 9 a.m. on weekdays.
Bring the letter from Acme Inc. with you.
It helps.
"""
NEW = "Prof. Okafor wrote to Novak Ltd. in Jan. about the mill. Nobody has answered. Capt. Ruiz will."


def events_of(sentences):
    """An event for each token with a full stop: what stands before and after; and whether a sentence ends."""
    tokens = [(token, k == len(line) - 1) for line in sentences for k, token in enumerate(line)]
    for (token, ends), (after, _) in zip(tokens, [*tokens[1:], ("", True)], strict=True):
        if token.endswith("."):
            word = token[:-1]
            event = {
                "word": word,
                "after": kind_of(after),
                "short": len(word) <= 3,
                "capital": word[:1].isupper(),
                "stop inside": "." in word,
                "always": True,  # the intercept
            }
            yield token, event, "end" if ends else "inside"


def kind_of(token):
    """What a token begins with."""
    if not token:
        return "nothing"
    return "capital" if token[0].isupper() else "digit" if token[0].isdigit() else "small"


def main():
    _, events, labels = zip(*events_of(line.split() for line in TEXT.split("\n") if line), strict=True)
    model = MaxEnt(C=10.0, tol=1e-6).fit(events, labels)
    print(f"{len(events)} full stops, {labels.count('end')} of which end a sentence.")
    print(f"Trained: {model.certificate_}.\n")
    tokens, events, _ = zip(*events_of([NEW.split()]), strict=True)
    print(NEW)
    for token, p in zip(tokens, model.predict_proba(events), strict=True):
        print(f"{token:>10}  ends a sentence with probability {p[0]:.3f}")
    print(f"\nWhy {tokens[1]!r} does not:\n\n{model.explain(events[1])}\n")
    print("Heaviest weights for the end of a sentence:")
    for feature, _, weight in model.top_features(5, label="end"):
        print(f"  {weight:+.3f}  {feature}")


if __name__ == "__main__":
    main()
