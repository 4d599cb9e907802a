"""Train the classifier of `digits.i` with NumPy alone and write `weights.npz`.

    python samples/digits/train.py

The network is a perceptron with one hidden layer, 64-48-10, trained with Adam on the
cross-entropy of its softmax; each batch is shifted by up to half a pixel and gets a little
noise, so that the network learns shapes and not pixels.  Everything random comes from one
seed, so a second run gives the same split and the same accuracy.  The constants were chosen
by cross-validation inside the 1,347 training images.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
SEED = 1797
TRAINING = 1347  # images to learn from; the other 450 are held back
PIXELS, HIDDEN, CLASSES = 64, 48, 10
SIDE = 8  # an image is SIDE x SIDE pixels
EPOCHS, BATCH = 300, 32
RATE, DECAY = 2e-3, 0.1
SHIFT, NOISE = 0.5, 0.1  # in pixels; in units of full ink

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]
Weights = dict[str, Floats]


class Split(NamedTuple):
    """Images `[n, 64]` with pixels from 0 to 1 and their labels `[n]`, in two parts."""

    x: Floats
    y: Labels
    held_x: Floats
    held_y: Labels


def load_split() -> Split:
    """Read the data and shuffle it once: 1,347 images to learn from, 450 held back."""
    table = np.loadtxt(HERE / "digits.csv.gz", delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(SEED).permutation(len(table))]
    x = table[:, :PIXELS] / np.float32(16)
    y = table[:, PIXELS].astype(np.int64)
    return Split(x[:TRAINING], y[:TRAINING], x[TRAINING:], y[TRAINING:])


def forward(x: Floats, w: Weights) -> tuple[Floats, Floats]:
    """`x [n, 64]` to the hidden layer `[n, 48]` and the probabilities `[n, 10]`."""
    hidden = np.maximum(x @ w["w1"].T + w["b1"], np.float32(0))
    scores = hidden @ w["w2"].T + w["b2"]
    powers: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def gradients(x: Floats, y: Labels, w: Weights) -> Weights:
    """The mean cross-entropy of a batch `x [n, 64]`, `y [n]`, differentiated by each weight."""
    hidden, delta = forward(x, w)
    delta[np.arange(len(y)), y] -= 1  # softmax and cross-entropy together: p - onehot
    delta /= np.float32(len(y))
    back = (delta @ w["w2"]) * (hidden > 0)
    return {
        "w1": back.T @ x,
        "b1": back.sum(axis=0),
        "w2": delta.T @ hidden,
        "b2": delta.sum(axis=0),
    }


def jitter(x: Floats, rng: np.random.Generator) -> Floats:
    """`x [n, 64]`, each image shifted by a random part of a pixel both ways, with noise."""
    images: Floats = np.pad(x.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    for axis in (1, 2):
        part: Floats = rng.uniform(-SHIFT, SHIFT, (len(x), 1, 1)).astype(np.float32)
        one: Floats = np.where(part > 0, np.roll(images, 1, axis), np.roll(images, -1, axis))
        images += np.abs(part) * (one - images)
    noise = rng.normal(0, NOISE, x.shape).astype(np.float32)
    return images[:, 1:-1, 1:-1].reshape(x.shape) + noise


def train(x: Floats, y: Labels) -> Weights:
    """`w1 [48, 64]`, `b1 [48]`, `w2 [10, 48]`, `b2 [10]` learned from `x [n, 64]`, `y [n]`."""
    rng = np.random.default_rng(SEED)

    def layer(outputs: int, inputs: int) -> Floats:
        scale = np.sqrt(2 / inputs)
        drawn: NDArray[np.float64] = rng.standard_normal((outputs, inputs)) * scale
        return drawn.astype(np.float32)

    w: Weights = {
        "w1": layer(HIDDEN, PIXELS),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": layer(CLASSES, HIDDEN),
        "b2": np.zeros(CLASSES, np.float32),
    }
    mean = {name: np.zeros_like(value) for name, value in w.items()}
    square = {name: np.zeros_like(value) for name, value in w.items()}
    step, steps = 0, EPOCHS * -(-len(x) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            batch = order[start : start + BATCH]
            slopes = gradients(jitter(x[batch], rng), y[batch], w)
            rate = np.float32(RATE * (1 - step / steps))
            step += 1
            for name, slope in slopes.items():
                mean[name] = np.float32(0.9) * mean[name] + np.float32(0.1) * slope
                square[name] = np.float32(0.999) * square[name] + np.float32(0.001) * slope**2
                m = mean[name] / np.float32(1 - 0.9**step)
                v = square[name] / np.float32(1 - 0.999**step)
                move = m / (np.sqrt(v) + np.float32(1e-8))
                if w[name].ndim == 2:  # decay the matrices, not the biases
                    move += np.float32(DECAY) * w[name]
                w[name] -= rate * move
    return w


def accuracy(x: Floats, y: Labels, w: Weights) -> float:
    """The share of images `x [n, 64]` whose likeliest class is their label `y [n]`."""
    return float(np.mean(forward(x, w)[1].argmax(axis=1) == y))


def main() -> None:
    """Train, report and write `weights.npz`."""
    data = load_split()
    w = train(data.x, data.y)
    path = HERE / "weights.npz"
    np.savez(path, allow_pickle=False, **w)
    print(f"training  {len(data.y):5,} images  {accuracy(data.x, data.y, w):7.2%}")
    print(f"held back {len(data.held_y):5,} images  {accuracy(data.held_x, data.held_y, w):7.2%}")
    print(f"wrote {path.name}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
