"""
What TRL's `GRPOTrainer._compute_loss` says about the batches, on a trainer made offline around a tiny random model.

The log-probs under training are an input of the comparison, so the trainer's reading of them from its model is replaced by
the batch's own; everything after that is TRL's.
"""
import atexit
import os
import shutil
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from datasets import Dataset
from outside import CLIP_HIGH, CLIP_LOW, DUAL_CLIP, NORMALISER, Batch, Reference
from tensors import Tensors, with_gradient
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer

KL_COEFFICIENT = 0.1
reference = Reference(["trl", "transformers", "torch"], "float64")


def tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte, and two specials."""
    letters = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocab={**letters, "<pad>": 256, "<eos>": 257}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


class GivenLogprobs(GRPOTrainer):
    """The trainer with the batch's log-probs in place of its model's."""

    given: torch.Tensor

    def _get_per_token_logps_and_entropies(self, *_args, **_options):
        return self.given, torch.zeros_like(self.given), None


def trainer(**options) -> GivenLogprobs:
    """A trainer of one process on the CPU."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=258,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
    )
    # From a folder: with a KL term the trainer loads its reference model by the same name.
    folder = tempfile.mkdtemp(prefix="rolldeck-fidelity-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    arguments = GRPOConfig(
        output_dir=f"{folder}/out",
        use_cpu=True,
        bf16=False,
        report_to=[],
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=NORMALISER,
        epsilon=1 - CLIP_LOW,
        **{"epsilon_high": CLIP_HIGH - 1, "beta": 0.0, **options},
    )
    made = GivenLogprobs(
        model=Qwen3ForCausalLM.from_pretrained(folder),
        reward_funcs=lambda completions, **_: [0.0 for _ in completions],
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": "a"}, {"prompt": "b"}]),
        processing_class=tokenizer(),
    )
    # One backward pass of one batch: nothing is split over accumulation steps.
    made.model.eval()
    return made


def loss(**options):
    """The trainer's loss of a batch; its completions are as long as the row, and gaps are the tool's."""
    made = trainer(**options)

    def total(t: Tensors) -> torch.Tensor:
        made.given = t.new
        rows, length = t.mask.shape
        ids = torch.zeros(rows, length, dtype=torch.long)
        inputs = {
            "prompt_ids": torch.ones(rows, 1, dtype=torch.long),
            "prompt_mask": torch.ones(rows, 1, dtype=torch.long),
            "completion_ids": ids,
            "completion_mask": torch.ones(rows, length, dtype=torch.long),
            "tool_mask": t.mask,
            "advantages": t.advantages[:, 0],
            "old_per_token_logps": t.old,
            "ref_per_token_logps": t.ref,
            "num_items_in_batch": t.mask.sum(),
        }
        return made._compute_loss(made.model, inputs)

    def operation(batch: Batch):
        return with_gradient(batch, total)

    return operation


if __name__ == "__main__":
    reference.add("loss/grpo", loss(loss_type="grpo"))
    reference.add("loss/grpo-delta", loss(loss_type="grpo", delta=DUAL_CLIP))
    plain_kl = {"loss_type": "grpo", "beta": KL_COEFFICIENT, "use_bias_correction_kl": False}
    reference.add("loss/grpo-kl", loss(**plain_kl))
    reference.add("loss/grpo-kl-corrected", loss(loss_type="grpo", beta=KL_COEFFICIENT))
    reference.add("loss/grpo-sequence", loss(loss_type="grpo", importance_sampling_level="sequence"))
    reference.add("loss/bnpo", loss(loss_type="bnpo"))
    reference.add("loss/dr_grpo", loss(loss_type="dr_grpo"))
    reference.add("loss/dapo", loss(loss_type="dapo"))
    reference.add("loss/cispo", loss(loss_type="cispo", epsilon_high=CLIP_HIGH))
    reference.main()
