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


ROWS = [0, 0, 0, 1, 1, 1]


def loss_of(
    name: str, new=NEW, old=OLD, advantages=ADVANTAGES, mask=MASK, refs=None, entropies=None, rows_of=None, **config
):
    lp = torch.tensor(new, dtype=D, requires_grad=True)
    inputs = TokenInputs(
        torch.tensor(mask, dtype=D),
        torch.tensor(old, dtype=D),
        torch.tensor(advantages, dtype=D),
        None if refs is None else torch.tensor(refs, dtype=D),
        None if rows_of is None else torch.tensor(rows_of),
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


def test_cispo_keeps_a_clipped_gradient():
    loss, grad, _ = loss_of("cispo", clip_low_threshold=0.8, clip_high_threshold=1.28)
    assert float(loss.sum()) == pytest.approx(0.772967, abs=1e-5)
    assert grad.tolist() == pytest.approx([-1.28, -1, -0.904837, 0.64, 0.4, 0], abs=1e-5)


def test_gspo_takes_the_ratio_of_each_row():
    loss, grad, clipped = loss_of("gspo", rows_of=ROWS, clip_low_threshold=0.8, clip_high_threshold=1.28)
    assert grad.tolist() == pytest.approx([-1.105171] * 3 + [0.525635] * 2 + [0], abs=1e-5)
    assert float(loss.sum()) == pytest.approx(-3 * 1.105171 + 2 * 0.525635, abs=1e-5)
    assert not clipped.any()
    _, grad, clipped = loss_of("gspo", rows_of=ROWS, clip_low_threshold=0.95, clip_high_threshold=1.05)
    assert grad.tolist() == pytest.approx([0] * 3 + [0.525635] * 2 + [0], abs=1e-5)
    assert clipped.tolist() == [True] * 5 + [False]


def test_a_weight_scales_the_whole_term():
    args = {"refs": [-0.6] * 6, "entropies": [2.0] * 6, "kl_coef": 0.1, "entropy_coef": 0.01}
    whole, whole_grad, _ = loss_of("ppo", **args)
    half, half_grad, _ = loss_of("ppo", mask=[weight / 2 for weight in MASK], **args)
    assert torch.allclose(half, whole / 2) and torch.allclose(half_grad, whole_grad / 2)


def test_far_apart_logprobs_stay_finite():
    for name in ("importance_sampling", "ppo", "cispo", "gspo"):
        for new, old in (([0.0], [-1e4]), ([-1e4], [0.0])):
            loss, grad, _ = loss_of(name, new=new, old=old, advantages=[-1], mask=[1], refs=[-1.0], kl_coef=1.0)
            assert torch.isfinite(loss).all() and torch.isfinite(grad).all()


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


@pytest.mark.parametrize(
    ("estimator", "terms", "slopes"),
    [(1, [0.1, -0.2], [1, 1]), (2, [0.005, 0.02], [0.1, -0.2]), (3, [0.004837, 0.021403], [0.095163, -0.221403])],
)
def test_kl_estimators_against_the_reference(estimator, terms, slopes):
    args = {"new": [-0.5, -1.0], "old": [-0.5, -1.0], "advantages": [0, 0], "mask": [1, 1], "refs": [-0.6, -0.8]}
    loss, grad, _ = loss_of("ppo", **args, kl_coef=1.0, kl_estimator=estimator)
    assert loss.tolist() == pytest.approx(terms, abs=1e-5)
    assert grad.tolist() == pytest.approx(slopes, abs=1e-5)


def test_kl_is_k3_when_nothing_else_is_said():
    args = {"new": [-0.5, -1.0], "old": [-0.5, -1.0], "advantages": [0, 0], "mask": [1, 1], "refs": [-0.6, -0.8]}
    loss, _, _ = loss_of("ppo", **args, kl_coef=1.0)
    assert loss.tolist() == pytest.approx([0.004837, 0.021403], abs=1e-5)


def test_entropy_is_rewarded():
    loss, _, _ = loss_of("ppo", new=[-1.0], old=[-1.0], advantages=[0], mask=[1], entropies=[2.0], entropy_coef=0.5)
    assert loss.tolist() == [-1.0]


def test_unknown_losses_and_settings_are_refused():
    for name, config in [
        ("cispo", {"dual_clip_c": 3}),
        ("sapo", {}),
        ("ppo", {"kl_estimator": 4}),
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


@pytest.mark.parametrize("loss", ["cross_entropy", "ppo", "importance_sampling", "cispo", "gspo"])
def test_the_trainer_equals_autograd_through_plain_logits(loss):
    """The chunked log-probability and its hand-written backward against torch's own."""
    trainer = tiny_trainer()
    data = rows([9, 7, 14])
    config = {} if loss == "cross_entropy" else {"entropy_coef": 0.1}
    finish(trainer.forward_backward(request(data, loss, temperature=0.7, **config)))
    from rolldeck_gpu_worker.packing import pack

    plain = tiny_trainer()
    for row in data:
        hidden = plain.weights.hidden(pack([row.tokens], torch.device("cpu")))
        logs = torch.log_softmax(hidden @ plain.weights.head.t() / 0.7, dim=-1)
        lp = logs.gather(1, torch.from_numpy(row.targets)[:, None]).squeeze(1)
        entropies = -(logs.exp() * logs).sum(-1)
        inputs = TokenInputs(*(torch.from_numpy(a) for a in (row.weights, row.logprobs, row.advantages)), None)
        token_losses(loss, lp, entropies, inputs, config)[0].sum().backward()
    scale = plain.weights.grad_flat.abs().max()
    assert torch.allclose(trainer.weights.grad_flat, plain.weights.grad_flat, atol=float(scale) * 1e-5)
