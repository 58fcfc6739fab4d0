"""An engine that answers samples at once, for measuring the wire around it. Training is the real thing."""

from __future__ import annotations

from .engine import Engine, SampleJob

_TOKENS = 16


class InstantEngine(Engine):
    """Every sample is a fixed text of at most 16 tokens that ends with the first stop token."""

    def submit(self, job: SampleJob) -> None:
        length = min(_TOKENS, job.params.max_tokens)
        vocab = job.snapshot.weights.config.vocab_size
        tokens = [(97 + index) % vocab for index in range(length)]
        if job.params.stop_tokens:
            tokens[-1] = min(job.params.stop_tokens)
        sequence = {
            "stop_reason": "stop" if job.params.stop_tokens else "length",
            "tokens": tokens,
            "logprobs": [-1.0] * length,
        }
        self.counters.sampled_tokens += length * job.num_samples
        self.counters.prompt_tokens += len(job.prompt) * job.num_samples
        self.counters.sequences_ended += job.num_samples
        result = {
            "sequences": [sequence] * job.num_samples,
            "weight_version": job.snapshot.version,
            "prompt_cache_hit_tokens": 0,
        }
        job.on_end(result, None)
