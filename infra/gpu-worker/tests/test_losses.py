"""Loss and optimiser vectors, float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_model import finish, request, rows, tiny_trainer

from rolldeck_gpu_worker.adamw import AdamParams, AdamW
from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.losses import TokenInputs, check_loss, token_losses

D = torch.float64
NEW = [-0.5, -1, -0.2, -0.7, -1.5, 0]
OLD = [-0.9, -1, -0.1, -1.2, -1.1, 0]
MASK = [1, 1, 1, 1, 1, 0]
ADVANTAGES = [1, 1, 1, -0.5, -0.5, -0.5]


def loss_of(name: str, new=NEW, old=OLD, advantages=ADVANTAGES, mask=MASK, refs=None, entropies=None, **config):
    lp = torch.tensor(new, dtype=D, requires_grad=True)
    inputs = TokenInputs(
        torch.tensor(mask, dtype=D),
        torch.tensor(old, dtype=D),
        torch.tensor(advantages, dtype=D),
        None if refs is None else torch.tensor(refs, dtype=D),
    )
    entropies = torch.zeros_like(lp) if entropies is None else torch.tensor(entropies, dtype=D)
    loss, clipped = token_losses(name, lp, entropies, inputs, config)
    loss.sum().backward()
    return loss.detach(), lp.grad, clipped


def test_importance_sampling_sum_and_gradient():
    loss, grad, _ = loss_of("importance_sampling")
    assert float(loss.sum()) == pytest.approx(-2.237141, abs=1e-5)
    assert grad.tolist() == pytest.approx([-1.491825, -1, -0.904837, 0.824361, 0.335160, 0], abs=1e-5)


def test_ppo_sum_gradient_and_clips():
    loss, grad, clipped = loss_of("ppo", clip_low_threshold=0.8, clip_high_threshold=1.28)
    assert float(loss.sum()) == pytest.approx(-1.960477, abs=1e-5)
    assert grad.tolist() == pytest.approx([0, -1, -0.904837, 0.824361, 0, 0], abs=1e-5)
    assert clipped.tolist() == [True, False, False, True, True, False]


def test_denominators_come_in_with_the_advantages():
    scaled = [a / (2 * 4) for a in ADVANTAGES]
    bounds = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}
    assert float(loss_of("ppo", advantages=scaled, **bounds)[0].sum()) == pytest.approx(-0.245060, abs=1e-5)
    assert float(loss_of("importance_sampling", advantages=scaled)[0].sum()) == pytest.approx(-0.279643, abs=1e-5)


def test_dual_clip_bounds_negative_advantages():
    far = {"new": [np.log(4)], "old": [0.0], "advantages": [-0.5], "mask": [1]}
    assert float(loss_of("ppo", **far)[0]) == pytest.approx(2.0)
    loss, grad, _ = loss_of("ppo", **far, dual_clip_c=3)
    assert (float(loss), float(grad)) == (pytest.approx(1.5), 0.0)
    # Positive advantages do not know it.
    near = far | {"advantages": [0.5]}
    assert torch.equal(loss_of("ppo", **near)[0], loss_of("ppo", **near, dual_clip_c=3)[0])


def test_masked_tokens_never_leak():
    for old in (float("nan"), float("-inf"), -1e30):
        loss, grad, _ = loss_of("ppo", new=[-1.0, -1.0], old=[-1.0, old], advantages=[1, 1], mask=[1, 0])
        assert (loss[1], grad[1]) == (0, 0) and torch.isfinite(grad).all()


def test_tis_cap_bounds_the_weight_and_keeps_the_gradient_direction():
    loss, grad, clipped = loss_of("importance_sampling", new=[0.0], old=[-3.0], advantages=[1], mask=[1], tis_cap=2)
    assert (float(loss), float(grad), clipped.tolist()) == (pytest.approx(-2), pytest.approx(-2), [True])


def test_kl_is_k3_against_the_reference():
    args = {"new": [-0.5, -1.0], "old": [-0.5, -1.0], "advantages": [0, 0], "mask": [1, 1], "refs": [-0.6, -0.8]}
    loss, _, _ = loss_of("ppo", **args, kl_coef=1.0)
    assert loss.tolist() == pytest.approx([0.004837, 0.021403], abs=1e-5)


def test_entropy_is_rewarded():
    loss, _, _ = loss_of("ppo", new=[-1.0], old=[-1.0], advantages=[0], mask=[1], entropies=[2.0], entropy_coef=0.5)
    assert loss.tolist() == [-1.0]


def test_unknown_losses_and_settings_are_refused():
    for name, config in [
        ("cispo", {}),
        ("ppo", {"c": 1}),
        ("ppo", {"temperature": float("nan")}),
        ("ppo", {"kl_coef": -1}),
    ]:
        with pytest.raises(WorkerError) as caught:
            check_loss(name, config)
        assert caught.value.code == "bad_input"
    check_loss("ppo", {"kl_coef": 0, "clip_low_threshold": 0})


def adam_path(decay: float) -> list[float]:
    weight = torch.tensor([1.0], dtype=D)
    optimiser = AdamW(weight)
    path = []
    for grad in (0.5, -0.25):
        optimiser.step(weight, torch.tensor([grad], dtype=D), AdamParams(0.1, 0.9, 0.95, 1e-12, decay))
        path.append(float(weight))
    return path


def test_adamw():
    assert adam_path(0.0) == pytest.approx([0.9, 0.873163], abs=1e-5)
    assert adam_path(0.01) == pytest.approx([0.899, 0.871264], abs=1e-5)


def test_global_norm_clip():
    clipped, plain = torch.zeros(2, dtype=D), torch.zeros(2, dtype=D)
    norm, applied = AdamW(clipped).step(
        clipped, torch.tensor([3.0, 4.0], dtype=D), AdamParams(0.1, eps=1.0, grad_clip_norm=1)
    )
    AdamW(plain).step(plain, torch.tensor([0.6, 0.8], dtype=D), AdamParams(0.1, eps=1.0))
    assert (norm, applied) == (pytest.approx(5.0), True)
    assert torch.allclose(clipped, plain)


def test_a_non_finite_norm_changes_nothing():
    weight = torch.ones(2)
    optimiser = AdamW(weight)
    for bad in (float("nan"), float("inf")):
        assert optimiser.step(weight, torch.tensor([bad, 1.0]), AdamParams(0.1))[1] is False
    assert (weight.tolist(), optimiser.updates) == ([1.0, 1.0], 0)


@pytest.mark.parametrize("loss", ["cross_entropy", "ppo", "importance_sampling"])
def test_the_trainer_equals_autograd_through_plain_logits(loss):
    """The chunked log-probability and its hand-written backward against torch's own."""
    trainer = tiny_trainer()
    data = rows([9, 7, 14])
    config = {} if loss == "cross_entropy" else {"entropy_coef": 0.1}
    finish(trainer.forward_backward(request(data, loss, temperature=0.7, **config)))
    from rolldeck_gpu_worker.model import forward_packed
    from rolldeck_gpu_worker.packing import pack

    plain = tiny_trainer()
    for row in data:
        hidden = forward_packed(plain.weights, plain._rope, pack([row.tokens], torch.device("cpu")))
        logs = torch.log_softmax(hidden @ plain.weights.head.t() / 0.7, dim=-1)
        lp = logs.gather(1, torch.from_numpy(row.targets)[:, None]).squeeze(1)
        entropies = -(logs.exp() * logs).sum(-1)
        inputs = TokenInputs(*(torch.from_numpy(a) for a in (row.weights, row.logprobs, row.advantages)), None)
        token_losses(loss, lp, entropies, inputs, config)[0].sum().backward()
    scale = plain.weights.grad_flat.abs().max()
    assert torch.allclose(trainer.weights.grad_flat, plain.weights.grad_flat, atol=float(scale) * 1e-5)
