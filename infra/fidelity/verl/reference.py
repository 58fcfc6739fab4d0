"""What VeRL's own functions (trainer/ppo/core_algos) say about the batches."""
import numpy
import torch
from outside import CLIP_HIGH, CLIP_LOW, DUAL_CLIP, NORMALISER, Batch, Reference
from tensors import Tensors, tensors, with_gradient
from verl.protocol import DataProto
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import core_algos
from verl.utils.model import compute_position_id_with_mask
from verl.workers.config import ActorConfig

# Its group means are made with the default dtype.
torch.set_default_dtype(torch.float64)

reference = Reference(["verl", "torch"], "float64")
actor = ActorConfig(
    strategy="fsdp",
    rollout_n=1,
    ppo_micro_batch_size_per_gpu=1,
    clip_ratio=1 - CLIP_LOW,
    clip_ratio_low=1 - CLIP_LOW,
    clip_ratio_high=CLIP_HIGH - 1,
    clip_ratio_c=DUAL_CLIP,
)
MODES = ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


def add_advantages() -> None:
    """Estimators on the batch's rewards, by the names that VeRL registers them under."""

    def advantages(name: str, **options):
        def operation(batch: Batch):
            t = tensors(batch)
            answer, _ = core_algos.get_adv_estimator_fn(name)(
                token_level_rewards=t.token_rewards, response_mask=t.mask, index=t.index, config=AlgoConfig(), **options
            )
            return {"advantages": answer}

        return operation

    def reinforce(batch: Batch):
        t = tensors(batch)
        function = core_algos.get_adv_estimator_fn("reinforce_plus_plus")
        answer, _ = function(token_level_rewards=t.token_rewards, response_mask=t.mask, config=AlgoConfig(gamma=1.0))
        return {"advantages": answer}

    reference.add("advantage/grpo", advantages("grpo", norm_adv_by_std_in_grpo=True))
    reference.add("advantage/dr-grpo", advantages("grpo", norm_adv_by_std_in_grpo=False))
    reference.add("advantage/rloo", advantages("rloo"))
    reference.add("advantage/reinforce++", reinforce)


def add_aggregations() -> None:
    """`agg_loss` in every mode, on the terms −ρA, with L as the scale of the normalised sum."""

    def aggregation(mode: str):
        factor = NORMALISER if mode == "seq-mean-token-sum-norm" else None

        def loss(t: Tensors) -> torch.Tensor:
            terms = -torch.exp(t.new - t.old) * t.advantages
            return core_algos.agg_loss(terms, t.mask, mode, loss_scale_factor=factor)

        return lambda batch: with_gradient(batch, loss)

    for mode in MODES:
        reference.add(f"agg-loss/{mode}", aggregation(mode))


def add_losses() -> None:
    """Registered policy losses; the vanilla one always has the dual clip."""

    def loss(name: str, mode: str):
        function = core_algos.get_policy_loss_fn(name)

        def total(t: Tensors) -> torch.Tensor:
            value, _ = function(t.old, t.new, t.advantages, t.mask, mode, actor)
            return value

        return lambda batch: with_gradient(batch, total)

    reference.add("loss/vanilla", loss("vanilla", "token-mean"))
    reference.add("loss/cispo", loss("cispo", "token-mean"))
    reference.add("loss/gspo", loss("gspo", "seq-mean-token-mean"))


def add_kl() -> None:
    """`kl_penalty` under both names of each estimator, token by token, with the gradient of their sum."""

    def kl(name: str):
        def terms(t: Tensors) -> torch.Tensor:
            return torch.where(t.mask.bool(), core_algos.kl_penalty(t.new, t.ref, name), 0.0)

        def operation(batch: Batch):
            answer = with_gradient(batch, lambda t: terms(t).sum())
            return {**answer, "values": terms(tensors(batch)).detach()}

        return operation

    for name in ["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3"]:
        reference.add(f"kl/{name}", kl(name))


FLOATS = ["rollout_log_probs", "token_level_scores", "advantages"]


def data_proto(export: dict) -> DataProto:
    """Our export as a `DataProto`, which its own checks have taken, in pieces and joined again."""
    data = DataProto.from_dict(
        tensors={
            name: torch.tensor(rows, dtype=torch.float64 if name in FLOATS else torch.int64)
            for name, rows in export["tensors"].items()
        },
        non_tensors={name: numpy.array(values, dtype=object) for name, values in export["non_tensors"].items()},
        meta_info=export["meta_info"],
    )
    data.check_consistency()
    joined = DataProto.concat(data.split(1))
    joined.check_consistency()
    return joined


def add_exports() -> None:
    """What VeRL makes of a batch that we exported: its protocol, its position ids, and its estimator's advantages."""

    def proto(export: dict):
        data = data_proto(export)
        width = data.batch["responses"].size(1)
        return {
            "values": [
                *(data.batch[name].tolist() for name in export["tensors"] if name != "position_ids"),
                compute_position_id_with_mask(data.batch["attention_mask"]).tolist(),
                data.batch["attention_mask"][:, -width:].tolist(),
            ]
        }

    def advantages(export: dict):
        data = data_proto(export)
        answer, _ = core_algos.get_adv_estimator_fn("rloo")(
            token_level_rewards=data.batch["token_level_scores"],
            response_mask=data.batch["response_mask"],
            index=data.non_tensor_batch["uid"],
            config=AlgoConfig(),
        )
        return {"values": answer}

    reference.add_export("export/data-proto", proto)
    reference.add_export("export/advantages", advantages)


if __name__ == "__main__":
    add_advantages()
    add_aggregations()
    add_losses()
    add_kl()
    add_exports()
    reference.main()
