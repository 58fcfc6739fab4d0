"""Any causal language model of `transformers`, run over flat tokens by this worker's own attention.

The library computes everything but attention: its attention interface is given a function that attends over a packed batch or
cache rows, so that one code path trains and samples what the own Qwen3 pass does not implement. What an architecture's
attention does beyond that (windows, soft caps, sinks) is refused: each model is first held against the library's own attention
on two short rows, and is not served when the two differ."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .attention import CachedAttention, CachedStep, PackedAttention, PrefillGroup
from .errors import bad_input
from .flat_views import flat_views
from .kv_rows import KvRows
from .lora import UNEMBED, LoraAdapter, LoraSpec, LowRank
from .model_config import ModelConfig
from .packing import PackedBatch, pack
from .policy_weights import PolicyWeights

_NAME = "rolldeck"
_PROBE = ([3, 1, 4, 1, 5, 9, 2], [6, 5, 3])
# Largest difference of a probe's logits, in their standard deviations.
_PROBE_TOLERANCE = 1e-3


@dataclass
class _Call(threading.local):
    """What the library's modules are to use during one forward pass of this thread."""

    attend: PackedAttention | CachedAttention | None = None
    low_ranks: dict[str, LowRank] = field(default_factory=dict)
    recompute: bool = False


_call = _Call()


def _attention(module, query, key, value, _mask, scaling=None, dropout=0.0, **extras):
    """The library's attention function: queries [1, heads, tokens, head_dim], keys and values alike with kv_heads."""
    for name in ("softcap", "s_aux"):
        if extras.get(name) is not None:
            raise bad_input(f"its attention has {name}, which this worker does not compute", "base_model")
    q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
    out = _call.attend(module.layer_idx, q, k, v, scaling)
    return out.view(1, q.shape[0], q.shape[1], -1), None


ALL_ATTENTION_FUNCTIONS.register(_NAME, _attention)


class TransformersStructure:
    """One architecture and shape: the library's modules without weights, and the names of what they need."""

    def __init__(self, folder: Path, config: ModelConfig):
        self.config = config
        self._folder = folder
        with _refusing():
            self._read = AutoConfig.from_pretrained(folder, local_files_only=True)
        module = self._instance(0)
        named = {id(parameter): name for name, parameter in module.named_parameters()}
        self.shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
        # Every name that a tied parameter goes by, and the one that it is stored under.
        self._aliases = {name: named[id(p)] for name, p in module.named_parameters(remove_duplicate=False)}
        self.head_name = next(n for n, m in module.named_modules() if m is module.get_output_embeddings()) + ".weight"
        self._prefix = f"{module.base_model_prefix}."
        flat = self._flat(module)
        expected = _expected(module)
        self._module = module
        self._strip(module)
        self._check(self.wrap(flat, False, None), expected)

    def make_weights(self, seed: int, device: torch.device, with_grad: bool) -> TransformersWeights:
        """The folder's weights, or fresh ones from `seed` when it has none."""
        return self.wrap(self._flat(self._instance(seed)).to(device), with_grad, None)

    def wrap(
        self, flat: torch.Tensor, with_grad: bool, adapter: LoraAdapter | None, untied: bool = False
    ) -> TransformersWeights:
        """@param untied: a tied head's own weights are the last of `flat`"""
        self._move_buffers(flat.device)
        return TransformersWeights(self, flat, with_grad, adapter, untied)

    def lora_modules(self, spec: LoraSpec) -> dict[str, tuple[int, int]]:
        """(out, in) of each linear module that `spec` adapts: by its name it belongs to attention, MLP or neither."""
        modules: dict[str, tuple[int, int]] = {}
        for name, module in self._linears():
            attn = "attn" in name or "attention" in name
            mlp = not attn and any(part in name for part in ("mlp", "feed_forward", "ffn"))
            if attn and spec.train_attn or mlp and spec.train_mlp:
                modules[name] = (module.out_features, module.in_features)
        if spec.train_unembed:
            if self.head_name != f"{UNEMBED}.weight":
                raise bad_input(f"its output layer {self.head_name} can not be adapted", "lora_config.train_unembed")
            modules[UNEMBED] = self.shapes[self._aliases[self.head_name]]
        return modules

    def run(self, weights: TransformersWeights, attend, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Final hidden states [tokens, hidden]."""
        inputs = {"input_ids": tokens[None], "position_ids": positions[None], "use_cache": False}
        low_ranks = weights.adapter.low_ranks if weights.adapter is not None else {}
        body = {name: view.to(weights.compute) for name, view in weights.body.items()}
        with _calling(attend, low_ranks, weights.recompute and torch.is_grad_enabled()):
            out = functional_call(self._module.base_model, body, (), inputs, tie_weights=False)
        return out.last_hidden_state[0]

    def body(self, views: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What the modules below the head need, by their own names."""
        length = len(self._prefix)
        names = (name for name in self._aliases if name.startswith(self._prefix))
        return {name[length:]: views[self._aliases[name]] for name in names}

    def stored_head(self) -> str:
        return self._aliases[self.head_name]

    def _instance(self, seed: int) -> PreTrainedModel:
        options = {"attn_implementation": "eager", "dtype": torch.float32}
        with _refusing(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if any(self._folder.glob("*.safetensors")):
                found = AutoModelForCausalLM.from_pretrained(
                    self._folder, local_files_only=True, use_safetensors=True, **options
                )
            else:
                # A copy: the library keeps it in the model and writes the attention's name into it.
                found = AutoModelForCausalLM.from_config(deepcopy(self._read), **options)
        if self._read.architectures != [type(found).__name__]:
            raise bad_input(f"transformers makes a {type(found).__name__} of {self._read.architectures}", "base_model")
        return found.eval()

    def _flat(self, module: PreTrainedModel) -> torch.Tensor:
        parameters = dict(module.named_parameters())
        return torch.cat([parameters[name].detach().reshape(-1).float() for name in self.shapes])

    def _linears(self) -> Iterator[tuple[str, torch.nn.Linear]]:
        head = self.head_name.removesuffix(".weight")
        for name, module in self._module.named_modules():
            if isinstance(module, torch.nn.Linear) and name != head:
                yield name, module

    def _strip(self, module: PreTrainedModel) -> None:
        """Takes the weights out: they are given with each call."""
        module.set_attn_implementation(_NAME)
        for part in module.modules():
            for name, parameter in part.named_parameters(recurse=False):
                part._parameters[name] = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), False)
        for name, linear in self._linears():
            linear.register_forward_hook(_add_low_rank(name))
        for part in module.modules():
            if isinstance(part, GradientCheckpointingLayer):
                part.forward = _recomputing(part, part.forward)

    def _move_buffers(self, device: torch.device) -> None:
        """What the modules computed for themselves, rotary frequencies for one; parameters are not here to be moved."""
        for part in self._module.modules():
            for name, buffer in part._buffers.items():
                if buffer is not None and buffer.device != device:
                    part._buffers[name] = buffer.to(device)

    def _check(self, weights: TransformersWeights, expected: list[torch.Tensor]) -> None:
        """@raises WorkerError bad_input when this worker's attention gives other logits than the library's own"""
        rows = [np.asarray(row) % self.config.vocab_size for row in _PROBE]
        try:
            with torch.no_grad():
                batch = pack(rows, weights.flat.device)
                logits = weights.hidden(batch) @ weights.head.t()
                cache = KvRows(self.config, weights.flat.device)
                cache.reserve(1, len(rows[0]))
                sampled = weights.logits(cache, _prefill(rows[0]))
        except (AttributeError, TypeError, RuntimeError, IndexError) as error:
            detail = f"its attention can't be replaced: {type(error).__name__}: {error}"[:500]
            raise bad_input(detail, "base_model") from error
        pairs = [(sampled[0], expected[0][-1])]
        for place, index in enumerate(batch.order):
            pairs.append((logits[batch.starts[place] : batch.starts[place + 1]], expected[index]))
        for ours, theirs in pairs:
            gap = float((ours - theirs).abs().max() / theirs.std())
            if not gap <= _PROBE_TOLERANCE:
                detail = f"its attention is not the usual one: logits differ by {gap:.2g} deviations"
                raise bad_input(detail, "base_model")


class TransformersWeights(PolicyWeights):
    """Weights for a structure; see `PolicyWeights`."""

    def __init__(
        self,
        structure: TransformersStructure,
        flat: torch.Tensor,
        with_grad: bool,
        adapter: LoraAdapter | None,
        untied: bool,
    ):
        config = replace(structure.config, tied=False) if untied else structure.config
        super().__init__(config, flat, with_grad, adapter)
        shapes, head = dict(structure.shapes), structure.stored_head()
        if untied:
            shapes[structure.head_name] = shapes[head]
            head = structure.head_name
        self._structure = structure
        self._views = flat_views(flat, shapes, self._own_grad)
        self.head = self._views[head]
        self.body = structure.body(self._views)

    def hidden(self, batch: PackedBatch) -> torch.Tensor:
        return self._structure.run(self, PackedAttention(batch.groups), batch.tokens, batch.positions)

    def _cached_hidden(self, cache: KvRows, step: CachedStep) -> torch.Tensor:
        hidden = self._structure.run(self, CachedAttention(cache, step), step.tokens, step.positions)
        return hidden[step.last]

    def snapshot(self) -> TransformersWeights:
        flat, head = self.flat.detach().to(self.compute, copy=True), self._structure.stored_head()
        tied = head != self._structure.head_name
        untie = tied and self.adapter is not None and UNEMBED in self.adapter.low_ranks
        copy = torch.cat([flat, self.head.detach().to(self.compute).reshape(-1)]) if untie else flat
        merged = self._structure.wrap(copy, False, None, untied=untie)
        self._add_deltas(merged)
        return merged

    def hf_views(self) -> dict[str, torch.Tensor]:
        return {name: view.detach() for name, view in self._views.items()}


def _add_low_rank(name: str):
    def hook(_module, inputs, output):
        low_rank = _call.low_ranks.get(name)
        return output if low_rank is None else output + low_rank(inputs[0])

    return hook


def _recomputing(layer: torch.nn.Module, forward: Callable) -> Callable:
    """A layer's forward that keeps only its input where the call asks for that. The backward pass comes after the call, when
    the modules are without weights again: what the call gave them is given once more."""

    def run(*args, **options):
        if not _call.recompute:
            return forward(*args, **options)
        given, attend, low_ranks = dict(layer.named_parameters()), _call.attend, _call.low_ranks

        def again(*inputs):
            with _calling(attend, low_ranks, False):
                return functional_call(layer, given, inputs, options, tie_weights=False)

        return checkpoint(again, *args, use_reentrant=False)

    return run


@contextmanager
def _calling(attend, low_ranks: dict[str, LowRank], recompute: bool) -> Iterator[None]:
    before = _call.attend, _call.low_ranks, _call.recompute
    _call.attend, _call.low_ranks, _call.recompute = attend, low_ranks, recompute
    try:
        yield
    finally:
        _call.attend, _call.low_ranks, _call.recompute = before


@contextmanager
def _refusing() -> Iterator[None]:
    """What the library makes of a folder that it can't run."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, ImportError, OSError, RuntimeError) as error:
        reason = str(error).split("\n")[0][:300]
        raise bad_input(f"transformers can't run it: {type(error).__name__}: {reason}", "base_model") from error


def _prefill(row: np.ndarray) -> CachedStep:
    """One step that reads a whole row into the first row of an empty cache."""
    places = torch.arange(len(row))
    mask = torch.ones(len(row), len(row), dtype=torch.bool).tril()[None, None]
    group = PrefillGroup(0, 1, len(row), grid=places, kept=places, seen=len(row), mask=mask)
    tokens = torch.from_numpy(row)
    return CachedStep(tokens, places, torch.zeros_like(places), places[-1:], 0, 0, None, [group])


@torch.no_grad()
def _expected(module: PreTrainedModel) -> list[torch.Tensor]:
    """The probe's logits [tokens, vocab] row by row, by the library alone."""
    vocab = module.get_output_embeddings().weight.shape[0]
    rows = [torch.tensor([row]) % vocab for row in _PROBE]
    return [module(input_ids=row, use_cache=False).logits[0].float() for row in rows]
