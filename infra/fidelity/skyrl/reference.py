"""What SkyRL's own functions say about the batches: its training functions in torch, its Tinker server's losses in JAX."""
import os
from types import SimpleNamespace

os.environ["JAX_ENABLE_X64"] = "1"

import jax
import jax.numpy as jnp
import torch
from outside import CLIP_HIGH, CLIP_LOW, DUAL_CLIP, NORMALISER, Batch, Reference
from skyrl.backends.skyrl_train.training_batch import TrainingInputBatch
from skyrl.backends.skyrl_train.utils import off_policy_correction_utils as off_policy
from skyrl.backends.skyrl_train.utils import ppo_utils
from skyrl.tinker import loss_fns
from skyrl.train.config import AlgorithmConfig
from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
from skyrl.train.generators.base import TrajectoryID
from skyrl.train.trainer import RayPPOTrainer
from skyrl.train.utils.trainer_utils import validate_generator_output
from tensors import Tensors, tensors, with_gradient

# Its group means are made with the default dtype.
torch.set_default_dtype(torch.float64)

reference = Reference(["skyrl", "torch", "jax"], "float64")


def algorithm(loss: str) -> AlgorithmConfig:
    """SkyRL's configuration with the bounds that every comparison uses."""
    config = AlgorithmConfig()
    config.policy_loss_type = loss
    config.loss_reduction = "sequence_mean"
    config.eps_clip_low = config.cispo.cispo_eps_clip_low = 1 - CLIP_LOW
    config.eps_clip_high = config.cispo.cispo_eps_clip_high = CLIP_HIGH - 1
    config.clip_ratio_c = DUAL_CLIP
    return config


def add_advantages() -> None:
    """Every estimator on the batch's rewards."""

    def advantages(name: str, by_std: bool):
        def operation(batch: Batch):
            t = tensors(batch)
            answer, _ = ppo_utils.compute_advantages_and_returns(
                t.token_rewards, t.mask, t.index, name, algorithm("regular"), grpo_norm_by_std=by_std
            )
            return {"advantages": answer}

        return operation

    for name in ["grpo", "rloo", "maxrl", "reinforce++"]:
        reference.add(f"advantage/{name}", advantages(name, True))
    reference.add("advantage/dr-grpo", advantages("grpo", False))


def add_normalisation() -> None:
    """The batch's advantages brought to mean 0 and variance 1: by the masked whitening, and as the trainer does it."""

    def whitened(batch: Batch):
        t = tensors(batch)
        return {"advantages": ppo_utils.masked_whiten(t.advantages, t.mask) * t.mask}

    def by_trainer(batch: Batch):
        t = tensors(batch)
        config = algorithm("regular")
        config.advantage_batch_normalize = True
        config.loss_reduction = "seq_mean_token_sum_norm"
        # A reduction by rows × L, undone below: the method does both.
        config.max_seq_len = 1
        trainer = RayPPOTrainer.__new__(RayPPOTrainer)
        trainer.cfg = SimpleNamespace(
            trainer=SimpleNamespace(algorithm=config, micro_train_batch_size_per_gpu=len(batch.rewards))
        )
        rows = len(batch.rewards)
        # As an estimator leaves them: 0 where nothing is trained.
        data = TrainingInputBatch(
            {"advantages": t.advantages * t.mask, "response_mask": t.mask, "loss_mask": t.mask}
        )
        normalised = trainer._normalize_advantages(data, [(0, rows)])["advantages"]
        return {"advantages": normalised * rows * t.mask}

    reference.add("normalise/masked-whiten", whitened)
    reference.add("normalise/trainer", by_trainer)


def policy_loss(name: str, config: AlgorithmConfig, t: Tensors, advantages: torch.Tensor, corrected: bool = False):
    """The summed loss by SkyRL's registered function."""
    function = ppo_utils.PolicyLossRegistry.get(name)
    loss, _ = function(t.new, t.old, advantages, config, t.mask, t.rollout if corrected else None)
    return loss


def add_losses() -> None:
    """Summed losses by name, and the dual clip under each reduction."""

    def loss(name: str):
        return lambda batch: with_gradient(batch, lambda t: policy_loss(name, algorithm(name), t, t.advantages))

    def reduction(name: str):
        def operation(batch: Batch):
            def scaled(t: Tensors) -> torch.Tensor:
                rows = t.mask.shape[0]
                return ppo_utils.apply_loss_reduction_to_advantages_minibatch(
                    t.advantages, t.mask, name, rows, NORMALISER, batch.group_bounds()
                )

            answer = with_gradient(
                batch, lambda t: policy_loss("dual_clip", algorithm("dual_clip"), t, scaled(t))
            )
            t = tensors(batch)
            return {**answer, "advantages": scaled(t) * t.mask}

        return operation

    for name in ["regular", "dual_clip", "cispo", "gspo", "importance_sampling", "cross_entropy"]:
        reference.add(f"loss/{name}", loss(name))
    for name in ["token_mean", "sequence_mean", "seq_mean_token_sum_norm", "prompt_mean"]:
        reference.add(f"reduction/{name}", reduction(name))


def add_kl() -> None:
    """Estimators of the KL divergence, token by token, with the gradient of their sum."""

    def kl(name: str):
        def operation(batch: Batch):
            def terms(t: Tensors) -> torch.Tensor:
                return ppo_utils.compute_approx_kl(t.new, t.ref, t.mask, name)

            answer = with_gradient(batch, lambda t: terms(t).sum())
            return {**answer, "values": terms(tensors(batch)).detach()}

        return operation

    for name in ["k1", "k2", "k3", "abs"]:
        reference.add(f"kl/{name}", kl(name))


def corrections(**changes) -> AlgorithmConfig:
    """A configuration whose off-policy part has these settings."""
    config = algorithm("regular")
    for key, value in changes.items():
        setattr(config.off_policy_correction, key, value)
    return config


OUTLIER = {"outlier_token_is_threshold_low": 0.25, "outlier_token_is_threshold_high": 4.0}
TOKEN = {"token_mask_is_threshold_low": 0.5, "token_mask_is_threshold_high": 2.0}


def add_off_policy() -> None:
    """Weights and masks by themselves."""

    def tis(kind: str):
        def operation(batch: Batch):
            t = tensors(batch)
            config = corrections(sequence_tis_ratio_clip_high=2.0).off_policy_correction
            weights, _ = off_policy.compute_tis_ratio(t.old, t.rollout, t.mask, kind, config)
            return {"values": weights * t.mask if kind == "token" else weights.squeeze(-1)}

        return operation

    def sequence_mask(kind: str):
        def operation(batch: Batch):
            t = tensors(batch)
            config = corrections().off_policy_correction
            kept, _ = off_policy.compute_sequence_mask(t.old, t.rollout, t.mask, kind, config)
            return {"values": kept.squeeze(-1)}

        return operation

    def outliers(batch: Batch):
        t = tensors(batch)
        config = corrections(**OUTLIER).off_policy_correction
        kept, _ = off_policy.compute_outlier_token_mask(t.old, t.rollout, t.mask, config)
        return {"values": kept.squeeze(-1)}

    def token_mask(batch: Batch):
        t = tensors(batch)
        config = corrections(**TOKEN).off_policy_correction
        kept, _ = off_policy.compute_token_mask(t.old, t.rollout, t.mask, config)
        return {"values": kept * t.mask}

    for kind in ["token", "sequence"]:
        reference.add(f"off-policy/tis-{kind}", tis(kind))
    for kind in ["product", "geometric"]:
        reference.add(f"off-policy/mask-{kind}", sequence_mask(kind))
    reference.add("off-policy/outliers", outliers)
    reference.add("off-policy/token-mask", token_mask)


def add_corrected_losses() -> None:
    """Clipped losses that carry those weights and masks."""

    def corrected(**changes):
        config = corrections(**changes)
        return lambda batch: with_gradient(batch, lambda t: policy_loss("regular", config, t, t.advantages, True))

    reference.add("off-policy/loss-tis-token", corrected(tis_ratio_type="token"))
    reference.add(
        "off-policy/loss-tis-sequence", corrected(tis_ratio_type="sequence", sequence_tis_ratio_clip_high=2.0)
    )
    reference.add("off-policy/loss-product", corrected(tis_ratio_type="token", sequence_mask_metric="product"))
    reference.add("off-policy/loss-token-mask", corrected(**OUTLIER, **TOKEN))


def add_tinker_losses() -> None:
    """The losses of SkyRL's Tinker server, in JAX, summed over the batch."""

    def loss(name: str):
        config = loss_fns.LossFnConfig(
            clip_low_threshold=jnp.asarray(CLIP_LOW), clip_high_threshold=jnp.asarray(CLIP_HIGH)
        )

        def operation(batch: Batch):
            mask = jnp.asarray(batch.mask, dtype=jnp.float64)
            old = jnp.asarray(batch.old, dtype=jnp.float64)
            advantages = jnp.asarray(batch.advantages, dtype=jnp.float64)[:, None] * jnp.ones_like(mask)

            def total(new: jax.Array) -> jax.Array:
                return loss_fns.LOSS_FUNCTION_MAP[name](new, mask, old, advantages, config).sum()

            value, gradient = jax.value_and_grad(total)(jnp.asarray(batch.new, dtype=jnp.float64))
            return {"value": value, "gradient": gradient}

        return operation

    for name in ["cross_entropy", "importance_sampling", "ppo", "cispo"]:
        reference.add(f"tinker-loss/{name}", loss(name))


def generated(export: dict) -> dict:
    """Our export as a `GeneratorOutput`, which the trainer's validator has taken."""
    output = dict(export["output"])
    output["trajectory_ids"] = [TrajectoryID(**each) for each in output["trajectory_ids"]]
    rows = len(output["response_ids"])
    validate_generator_output(rows, output, step_wise=True)
    if not export["stepWise"]:
        validate_generator_output(rows, output, step_wise=False)
    return output


def trainer_for(output: dict) -> RayPPOTrainer:
    """A trainer with what its methods read of the configuration, and nothing else."""
    config = algorithm("regular")
    config.advantage_estimator = "rloo"
    trainer = RayPPOTrainer.__new__(RayPPOTrainer)
    trainer.all_metrics = {}
    trainer.cfg = SimpleNamespace(
        trainer=SimpleNamespace(algorithm=config),
        generator=SimpleNamespace(step_wise_trajectories=True, merge_stepwise_output=False, n_samples_per_prompt=1),
    )
    return trainer


def preprocessed(export: dict):
    """Rewards per token by the trainer's own post-processing, then its batch tensors."""
    output = generated(export)
    uids = [each.instance_id for each in output["trajectory_ids"]]
    output, uids = trainer_for(output).postprocess_generator_output(output, uids)
    tensors_ = convert_prompts_responses_to_batch_tensors(
        SimpleNamespace(pad_token_id=0),
        output["prompt_token_ids"],
        output["response_ids"],
        output["rewards"],
        output["loss_masks"],
        output["rollout_logprobs"],
    )
    return output, uids, tensors_[:6]


def add_exports() -> None:
    """What SkyRL makes of a batch that we exported: its validator, its tensors, and its trainer's advantages."""

    def batch_tensors(export: dict):
        _, _, made = preprocessed(export)
        return {"values": [tensor.tolist() for tensor in made]}

    def advantages(export: dict):
        output, uids, (_, _, response_mask, rewards, loss_mask, _) = preprocessed(export)
        data = TrainingInputBatch(
            {"rewards": rewards, "response_mask": response_mask, "loss_mask": loss_mask, "values": None}
        )
        data.metadata = {"uids": uids, "is_last_step": output["is_last_step"], "avg_response_length": 0.0}
        answer = trainer_for(output).compute_advantages_and_returns(data)["advantages"]
        return {"values": answer * loss_mask}

    reference.add_export("export/batch-tensors", batch_tensors)
    reference.add_export("export/advantages", advantages)


if __name__ == "__main__":
    add_advantages()
    add_normalisation()
    add_losses()
    add_kl()
    add_off_policy()
    add_corrected_losses()
    add_tinker_losses()
    add_exports()
    reference.main()
