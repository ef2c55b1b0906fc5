"""Patches, speculative decoding and fits against PyTorch, Transformers and SciPy."""

from unittest import mock

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats
import torch
import torch.nn.functional as F
from comparison import oracle
from packages import SCIPY, TORCH, TRANSFORMERS
from transformers import ViTConfig
from transformers.generation import utils as generation
from transformers.models.vit.modeling_vit import ViTEmbeddings
from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

pair = lambda size: (size, size) if isinstance(size, int) else tuple(size)  # noqa: E731


@oracle("patchify", "torch.nn.functional.unfold", TORCH)
def test_patchify(pixels, patch):
    size = pair(patch)
    batched = pixels if pixels.ndim == 4 else pixels[None]
    patches = F.unfold(batched, size, stride=size).transpose(1, 2)
    return patches if pixels.ndim == 4 else patches[0]


VIT = "transformers.models.vit.modeling_vit.ViTEmbeddings"


@oracle("embed_patches", VIT, TRANSFORMERS)
def test_embed_patches(pixels, kernel, bias=None, class_token=None, positions=None):
    dim, channels, *patch = kernel.shape
    config = ViTConfig(
        image_size=pixels.shape[-2:], patch_size=tuple(patch), num_channels=channels, hidden_size=dim
    )
    made = ViTEmbeddings(config).eval()
    made.patch_embeddings.projection.weight.data = kernel
    made.patch_embeddings.projection.bias.data = torch.zeros(dim) if bias is None else bias
    made.cls_token.data = torch.zeros(1, 1, dim) if class_token is None else class_token[None, None]
    if positions is None:
        made.position_embeddings.data = torch.zeros_like(made.position_embeddings)
    else:
        made.position_embeddings.data = positions[None]
    tokens = made(pixels[None])[0]
    return tokens if class_token is not None else tokens[1:]


@oracle("interpolate_positions", VIT + ".interpolate_pos_encoding", TRANSFORMERS)
def test_interpolate_positions(positions, grid, class_token=False):
    height, width = pair(grid)
    table = positions if class_token else torch.cat([torch.zeros_like(positions[:1]), positions])
    side = int((table.shape[0] - 1) ** 0.5)
    config = ViTConfig(image_size=side, patch_size=1, hidden_size=table.shape[-1])
    made = ViTEmbeddings(config)
    made.position_embeddings.data = table[None]
    like = torch.zeros(1, height * width + 1, table.shape[-1])
    found = made.interpolate_pos_encoding(like, height, width)[0]
    return found if class_token else found[1:]


@oracle("interpolate_positions", "torch.nn.functional.interpolate", TORCH, where={"class_token": False})
def test_bicubic(positions, grid):
    side = int(positions.shape[0] ** 0.5)
    table = positions.unflatten(0, (side, side)).permute(2, 0, 1)[None]
    found = F.interpolate(table, size=pair(grid), mode="bicubic", align_corners=False)
    return found[0].flatten(1).T


SINCOS = "transformers.models.vit_mae.modeling_vit_mae.build_2d_sinusoidal_position_embedding"


@oracle("sincos_positions", SINCOS, TRANSFORMERS, follows="row half first")
def test_sincos_positions(dim, grid):
    return build_2d_sinusoidal_position_embedding(*pair(grid), dim, dtype=torch.float64)


SPECULATIVE = "transformers.generation.utils._speculative_sampling"


@oracle("verify", SPECULATIVE, TRANSFORMERS)
def test_verify(target, draft, tokens, uniforms):
    if not draft[torch.arange(len(tokens)), tokens].all():
        raise NotImplementedError("it divides by the draft's probability")
    if (uniforms == 0).any():
        raise NotImplementedError("it accepts a token of probability zero if the uniform is zero")
    drawn = []

    def draw(probabilities, num_samples):
        drawn.append(probabilities[0])
        return probabilities.argmax(-1, keepdim=True)

    logits = torch.log(draft)[None], torch.log(target)[None]
    with mock.patch.object(torch, "rand_like", lambda like: uniforms.reshape(like.shape)):
        with mock.patch.object(torch, "multinomial", draw):
            _, accepted = generation._speculative_sampling(
                tokens[None], logits[0], len(tokens), logits[1]
            )
    return accepted, drawn[0]


@oracle("residual", SPECULATIVE, TRANSFORMERS)
def test_residual(target, draft):
    """A token that is rejected for sure, so that the next is drawn from the residual."""
    if target.ndim == 2:
        return torch.stack([_residual(*one) for one in zip(target, draft, strict=True)])
    return _residual(target, draft)


def _residual(target, draft):
    ratio = torch.where(draft > 0, target / draft, torch.inf)
    token = ratio.argmin()[None]
    two = torch.stack([target, target])
    return test_verify.implementation(two, draft[None], token, torch.ones(1))[1]


@oracle("sequence_length", VIT, TRANSFORMERS)
def test_sequence_length(image, patch, class_token=True):
    config = ViTConfig(image_size=pair(image), patch_size=pair(patch), num_channels=1, hidden_size=2)
    return ViTEmbeddings(config).position_embeddings.shape[1] - (not class_token)


@oracle("expected_tokens", "scipy.stats.geom", SCIPY, arrays="numpy")
def test_expected_tokens(acceptance, lookahead):
    """The mean of a geometric variable that is cut off: the sum of its chances to be larger."""
    if acceptance == 1:
        raise NotImplementedError("its variable ends with certainty")
    return scipy.stats.geom.sf(np.arange(lookahead + 1), 1 - acceptance).sum()


# Fits


@oracle("power_law", "scipy.stats.linregress", SCIPY, arrays="numpy")
def test_power_law(points):
    line = scipy.stats.linregress(*np.log(points.T))
    return np.exp(line.intercept), -line.slope


@oracle("fit_power_law", "scipy.stats.linregress", SCIPY, arrays="numpy")
def test_fit_power_law(compute, loss):
    line = scipy.stats.linregress(np.log(compute), np.log(loss))
    return np.exp(line.intercept), -line.slope


@oracle("fit_parametric", "scipy.optimize.minimize", SCIPY, arrays="numpy", tolerance=1e-3)
def test_fit_parametric(N, D, loss):
    """Hoffmann et al., appendix D.3: L-BFGS on Huber's loss from a grid of starts."""

    def objective(p):
        terms = [p[0] - p[1] * np.log(N), p[2] - p[3] * np.log(D), p[4] + 0 * N]
        off = scipy.special.logsumexp(terms, axis=0) - np.log(loss)
        return scipy.special.huber(1e-3, off).sum() * 1e6

    best = min(
        (
            scipy.optimize.minimize(
                objective, start, method="L-BFGS-B",
                options={"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10},
            )
            for start in ((6.0, 0.35, 7.5, 0.37, 0.6), (5.0, 0.3, 7.0, 0.3, 0.5))
        ),
        key=lambda found: found.fun,
    )  # fmt: skip
    found = scipy.optimize.minimize(objective, best.x, method="Nelder-Mead",
                                    options={"xatol": 1e-12, "fatol": 1e-14, "maxiter": 40_000,
                                             "maxfev": 40_000})  # fmt: skip
    a, alpha, b, beta, e = found.x
    return np.exp(a), np.exp(b), np.exp(e), alpha, beta


@oracle("compute_optimal", "scipy.optimize.minimize_scalar", SCIPY, arrays="numpy", tolerance=1e-5)
def test_compute_optimal(C, law):
    """Half the digits of float64 is what the minimum of a smooth function has."""

    def loss(log_n):
        N = np.exp(log_n)
        return law.A / N**law.alpha + law.B / (C / (6 * N)) ** law.beta

    found = scipy.optimize.minimize_scalar(loss, bracket=(10.0, 30.0), tol=1e-14)
    N = np.exp(found.x)
    return N, C / (6 * N)
