"""MXFP4 as it is stored: E2M1 codes in groups of 32 with an E8M0 scale each. The values are those of
mxfp4() in fast.c, with which the model is trained."""
import numpy as np

GROUP = 32
VALUES = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)


def pack(w):
    """A float32 matrix [rows, cols] as (codes [rows, cols / 2], scales [rows, cols / 32]), uint8."""
    groups = w.reshape(w.shape[0], -1, GROUP)
    top = np.maximum(np.abs(groups).max(-1, keepdims=True), np.float32(2.0 ** -100))
    power = np.ceil(np.log2(top / np.float32(6)))
    magnitude = np.abs(groups) / np.exp2(power)
    step = np.where(magnitude < 2, 0.5, np.where(magnitude < 4, 1, 2))
    magnitude = np.minimum(np.rint(magnitude / step) * step, 6)
    code = np.searchsorted(VALUES, magnitude).astype(np.uint8)
    code |= (np.signbit(groups) & (code > 0)).astype(np.uint8) << 3
    code = code.reshape(w.shape[0], -1)
    return code[:, 0::2] | code[:, 1::2] << 4, (power.squeeze(-1) + 127).astype(np.uint8)
