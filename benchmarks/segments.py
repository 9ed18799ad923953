"""dlib's structural SVM beside ours: noun phrases of CoNLL-2000 as segments of a sentence.

    FENCHEL_DATA=folder python benchmarks/segments.py [sentences]

dlib.train_sequence_segmenter (`pip install dlib-bin`) solves the max-margin problem of a chain with three
labels, begin, inside, outside, by cutting planes in C++; both get the attributes of the preset `chunk`, the
same constant (dlib's C is ours times the number of sentences) and the same absolute gap, 1 % of the optimum.
Making attributes is not counted, nor handing them to dlib. Scores are of 1,000 test sentences.
"""

import sys
import time
import warnings
from itertools import pairwise

import dlib

import datasets
from corpus import labels_of
from fenchel import ChainCRF
from fenchel.spans import span_scores

C, TOL = 0.5, 1e-2


def noun_phrases(labels):
    """B-NP, I-NP and O."""
    return [[label if label.endswith("-NP") else "O" for label in sentence] for sentence in labels]


def vectors(sequences):
    """The rows of all tokens as dlib's sparse vectors."""
    out, rows, starts = dlib.sparse_vectorss(), sequences.rows, sequences.starts.astype(int)
    for first, last in pairwise(starts):
        sentence = dlib.sparse_vectors()
        for t in range(first, last):
            at = slice(int(rows.indptr[t]), int(rows.indptr[t + 1]))
            pairs = sorted(zip(rows.indices[at].tolist(), rows.data[at].tolist(), strict=True))
            sentence.append(dlib.sparse_vector([dlib.pair(*pair) for pair in pairs]))
        out.append(sentence)
    return out


def ranges(labels):
    """The noun phrases of each sentence."""
    out = dlib.rangess()
    for sentence in labels:
        found, begin = dlib.ranges(), None
        for t, label in enumerate([*sentence, "O"]):
            if begin is not None and label != "I-NP":
                found.append(dlib.range(begin, t))
                begin = None
            begin = t if label == "B-NP" else begin
        out.append(found)
    return out


def as_labels(found, lengths):
    out = [["O"] * length for length in lengths]
    for labels, segments in zip(out, found, strict=True):
        for segment in segments:
            for t in segment:
                labels[t] = "I-NP" if t > segment.begin else "B-NP"
    return out


def rival(samples, segments, epsilon, n):
    params = dlib.segmenter_params()
    params.window_size, params.use_high_order_features, params.num_threads = 1, False, 1
    params.C, params.epsilon = C * n, epsilon
    return dlib.train_sequence_segmenter(samples, segments, params)


def main():
    warnings.simplefilter("ignore")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    train, test = (
        tokens[:count] for tokens, count in zip(datasets.sentences("conll2000"), (n, 1000), strict=True)
    )
    X, y, other, truth = train.without_last()[0], labels_of(train), test.without_last()[0], labels_of(test)
    y, truth = noun_phrases(y), noun_phrases(truth)
    settings = {"template": "chunk", "loss": "hinge", "banned": [("O", "I-NP")], "n_jobs": 1}
    model = ChainCRF(C=C, **settings)
    data = model.encode_training(X, y)
    model.fit_encoded(model.encode_training(X[:20], y[:20]))  # compiles
    samples, segments = vectors(data.sequences), ranges(y)
    began = time.process_time()
    model = ChainCRF(C=C, tol=TOL, **settings).fit_encoded(data)
    ours = time.process_time() - began
    found = model.certificate_
    score = span_scores(truth, model.predict(other)).f1
    print(f"fenchel {ours:.2f} s, objective {found.primal:.6f}, F1 {100 * score:.2f}", flush=True)
    began = time.process_time()
    segmenter = rival(samples, segments, TOL * found.primal, n)
    took = time.process_time() - began
    guessed = [segmenter(sentence) for sentence in vectors(model.encode(other))]
    score = span_scores(truth, as_labels(guessed, map(len, truth))).f1
    print(f"dlib {took:.2f} s, F1 {100 * score:.2f}, {took / ours:.1f} times", flush=True)


if __name__ == "__main__":
    main()
