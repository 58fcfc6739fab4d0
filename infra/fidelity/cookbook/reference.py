"""What the tinker cookbook's own functions say about the batches: advantages, datums, and the training data of a step.

A row becomes a trajectory: each span of trained tokens is an action, each gap an observation. Odd rows that have a gap drop
their history there, so that they give two datums. A row of which nothing is trained is one action, masked as a parse error.
"""
from dataclasses import dataclass

import tinker
import torch
from outside import Batch, Reference
from tinker.types._pydantic_types.datum import Datum as WireDatum
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages, trajectory_to_data
from tinker_cookbook.rl.types import PARSE_ERROR_MASKED_METRIC_KEY, Trajectory, TrajectoryGroup, Transition

reference = Reference(["tinker-cookbook", "tinker", "torch"], "float32")


@dataclass(frozen=True)
class Turn:
    """What the policy saw, and what it sampled."""

    prompt: list[int]
    sampled: list[int]
    logprobs: list[float]


def token(row: int, t: int) -> int:
    """The id of a row's token: the comparison's other side computes the same."""
    return 10 + (row * 31 + t * 7) % 200


def turns_of(batch: Batch, row: int) -> list[Turn]:
    """The row's turns."""
    mask = batch.mask[row]
    kept = mask if 1 in mask else [1] * len(mask)
    history = [1, 2, 3 + row % 5]
    turns: list[Turn] = []
    t = 0
    while 1 in kept[t:]:
        start = kept.index(1, t)
        end = next((i for i in range(start, len(kept)) if kept[i] == 0), len(kept))
        seen = [token(row, i) for i in range(t, start)]
        # A gap at an odd row: the next prompt does not begin with what came before.
        history = [4, 4, *seen] if turns and row % 2 == 1 else [*history, *seen]
        sampled = [token(row, i) for i in range(start, end)]
        turns.append(Turn(prompt=list(history), sampled=sampled, logprobs=batch.rollout[row][start:end]))
        history += sampled
        t = end
    return turns


def trajectory(batch: Batch, row: int) -> Trajectory:
    """The row as the cookbook's trajectory; its reward is the last transition's."""
    masked = 1 not in batch.mask[row]
    turns = turns_of(batch, row)
    transitions = [
        Transition(
            ob=tinker.ModelInput.from_ints(turn.prompt),
            ac=TokensWithLogprobs(tokens=turn.sampled, maybe_logprobs=turn.logprobs),
            reward=batch.rewards[row] if index == len(turns) - 1 else 0.0,
            episode_done=index == len(turns) - 1,
            metrics={PARSE_ERROR_MASKED_METRIC_KEY: 1.0} if masked else {},
        )
        for index, turn in enumerate(turns)
    ]
    return Trajectory(transitions=transitions, final_ob=tinker.ModelInput.from_ints([0]))


def groups(batch: Batch) -> list[TrajectoryGroup]:
    """The batch's groups, with no reward of a group's own."""
    return [
        TrajectoryGroup(
            trajectories_G=[trajectory(batch, row) for row in range(start, end)],
            final_rewards_G=[0.0] * (end - start),
            metrics_G=[{} for _ in range(start, end)],
        )
        for start, end in batch.group_bounds()
    ]


def arrays(datum: tinker.Datum) -> list[list[float]]:
    """Inputs, targets, log-probs of trained tokens, advantages and mask. What the mask leaves out has no log-prob here."""
    inputs = {key: value.to_torch().tolist() for key, value in datum.loss_fn_inputs.items()}
    logprobs = [value if kept else 0.0 for value, kept in zip(inputs["logprobs"], inputs["mask"], strict=True)]
    return [datum.model_input.to_ints(), inputs["target_tokens"], logprobs, inputs["advantages"], inputs["mask"]]


def add_operations() -> None:
    """The three functions by which the cookbook makes its training data."""

    def advantages(batch: Batch):
        return {"advantages": torch.cat(compute_advantages(groups(batch)))}

    def datums(batch: Batch):
        data = [
            datum
            for row in range(len(batch.rewards))
            for datum in trajectory_to_data(trajectory(batch, row), batch.advantages[row])
        ]
        return {"values": [arrays(datum) for datum in data]}

    def training_data(batch: Batch):
        made = groups(batch)
        data, places = assemble_training_data(made, compute_advantages(made))
        indices = [[place["group_idx"], place["traj_idx"]] for place in places]
        return {"values": [[*arrays(datum), place] for datum, place in zip(data, indices, strict=True)]}

    reference.add("compute_advantages", advantages)
    reference.add("trajectory_to_data", datums)
    reference.add("assemble_training_data", training_data)


def add_exports() -> None:
    """Our wire's datums as Tinker's own types: the one that its client sends, and the one that its users make."""

    def datums(export: list[dict]):
        made = []
        for each in export:
            wire = WireDatum.model_validate(each)
            datum = tinker.Datum(
                model_input=tinker.ModelInput.from_ints(wire.model_input.to_ints()),
                loss_fn_inputs={name: tensor.to_torch() for name, tensor in wire.loss_fn_inputs.items()},
            )
            inputs = {name: value.to_torch().tolist() for name, value in datum.loss_fn_inputs.items()}
            made.append(
                [datum.model_input.to_ints(), inputs["target_tokens"], inputs["logprobs"], inputs["advantages"]]
            )
        return {"values": made}

    reference.add_export("export/datums", datums)


if __name__ == "__main__":
    add_operations()
    add_exports()
    reference.main()
