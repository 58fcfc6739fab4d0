"""
Imports every outside function that the comparisons call: `imports.py <package>` prints one JSON line each with package,
version, function, ok and error. Nothing else runs; what can't be imported is known before any number is compared.
"""
import importlib
import importlib.metadata
import json
import sys

PPO_UTILS = "skyrl.backends.skyrl_train.utils.ppo_utils"
OFF_POLICY = "skyrl.backends.skyrl_train.utils.off_policy_correction_utils"
CORE_ALGOS = "verl.trainer.ppo.core_algos"
DATA_PROCESSING = "tinker_cookbook.rl.data_processing"

# Distribution, module and names, by the folder of the environment.
FUNCTIONS: dict[str, list[tuple[str, str, list[str]]]] = {
    "skyrl": [
        (
            "skyrl",
            PPO_UTILS,
            [
                "apply_loss_reduction_to_advantages_minibatch",
                "compute_advantages_and_returns",
                "compute_approx_kl",
                "compute_grpo_outcome_advantage",
                "compute_maxrl_advantage",
                "compute_policy_loss_cispo",
                "compute_reinforce_plus_plus_outcome_advantage",
                "compute_rloo_outcome_advantage",
                "cross_entropy_loss",
                "gspo_policy_loss",
                "importance_sampling_loss",
                "masked_whiten",
                "ppo_policy_loss",
            ],
        ),
        (
            "skyrl",
            OFF_POLICY,
            ["compute_outlier_token_mask", "compute_sequence_mask", "compute_tis_ratio", "compute_token_mask"],
        ),
        (
            "skyrl",
            "skyrl.tinker.loss_fns",
            ["cispo_loss", "cross_entropy_loss", "importance_sampling_loss", "ppo_loss"],
        ),
        ("skyrl", "skyrl.backends.skyrl_train.training_batch", ["TrainingInputBatch"]),
        ("skyrl", "skyrl.train.config", ["AlgorithmConfig"]),
        ("skyrl", "skyrl.train.dataset.preprocess", ["convert_prompts_responses_to_batch_tensors"]),
        ("skyrl", "skyrl.train.generators.base", ["TrajectoryID"]),
        ("skyrl", "skyrl.train.trainer", ["RayPPOTrainer"]),
        ("skyrl", "skyrl.train.utils.trainer_utils", ["validate_generator_output"]),
    ],
    "verl": [
        (
            "verl",
            CORE_ALGOS,
            [
                "agg_loss",
                "compute_grpo_outcome_advantage",
                "compute_policy_loss_cispo",
                "compute_policy_loss_gspo",
                "compute_policy_loss_vanilla",
                "compute_reinforce_plus_plus_outcome_advantage",
                "compute_rloo_outcome_advantage",
                "kl_penalty",
            ],
        ),
        ("verl", "verl.protocol", ["DataProto"]),
        ("verl", "verl.trainer.config", ["AlgoConfig"]),
        ("verl", "verl.utils.model", ["compute_position_id_with_mask"]),
        ("verl", "verl.workers.config", ["ActorConfig"]),
    ],
    "trl": [("trl", "trl", ["GRPOConfig", "GRPOTrainer"])],
    "cookbook": [
        (
            "tinker-cookbook",
            DATA_PROCESSING,
            ["assemble_training_data", "compute_advantages", "trajectory_to_data"],
        ),
        ("tinker-cookbook", "tinker_cookbook.rl.types", ["Trajectory", "TrajectoryGroup", "Transition"]),
        ("tinker", "tinker", ["Datum", "ModelInput"]),
        ("tinker", "tinker.types._pydantic_types.datum", ["Datum"]),
    ],
}


def version_of(distribution: str) -> str | None:
    """The installed version, or None where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def error_of(module: str, name: str) -> str | None:
    """Why the name can't be had from the module, or None."""
    try:
        getattr(importlib.import_module(module), name)
    except Exception as error:  # noqa: BLE001 - whatever an import raises is what is told
        return f"{type(error).__name__}: {error}"
    return None


def main(package: str) -> None:
    """One line a function."""
    for distribution, module, names in FUNCTIONS[package]:
        version = version_of(distribution)
        for name in names:
            error = error_of(module, name)
            line = {"package": distribution, "version": version, "function": f"{module}.{name}", "ok": error is None}
            print(json.dumps({**line, "error": error}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
