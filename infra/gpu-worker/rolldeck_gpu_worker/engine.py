"""The one engine thread: it alone touches weights, gradients and caches.

It alternates sampling steps with slices of training tasks (a slice is one micro-batch), giving each side about equal
time while both have work. Everything else talks to it through `submit` and `run`, from any thread; callbacks arrive
on the engine thread."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .batch import BatchLimits, SampleBatch, Sequence
from .errors import WorkerError, as_worker_error
from .kv_rows import KvRows
from .model_config import ModelConfig
from .phases import Phase
from .prefix_cache import PrefixCache
from .prompt_logprobs import prompt_logprobs
from .sampling import SamplingParams
from .snapshots import Snapshot

log = logging.getLogger(__name__)


@dataclass
class SampleJob:
    """One asample request: `num_samples` sequences of one prompt, answered together. `on_end(result, error)`.

    `on_step(sequences)`, where given, is called after each step until the job ends."""

    snapshot: Snapshot
    prompt: np.ndarray
    params: SamplingParams
    num_samples: int
    on_end: Callable[[dict | None, WorkerError | None], None]
    token_bytes: Callable[[int], bytes] | None = None
    prompt_logprobs: bool = False
    top_prompt_logprobs: int = 0
    prompt_logprobs_last: int | None = None
    on_step: Callable[[list[Sequence]], None] | None = None
    finished: bool = False
    sequences: list[Sequence] = field(default_factory=list)
    cancelled: bool = False

    def cancel(self) -> None:
        """Stops spending steps on it; `on_end` will not be called. Any thread."""
        self.cancelled = True
        for sequence in self.sequences:
            sequence.dropped = True


@dataclass
class EngineTask:
    """Training work. `start` makes the generator on the engine thread; its return value goes to `on_end`."""

    name: str
    start: Callable[[], Generator[None, None, Any]]
    on_end: Callable[[Any, WorkerError | None], None]
    cancelled: bool = False
    generator: Generator[None, None, Any] | None = None


@dataclass
class EngineCounters:
    """Monotonic totals, written by the engine thread only."""

    sampled_tokens: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    sample_steps: int = 0
    sequences_ended: int = 0
    tasks_ended: int = 0
    sample_seconds: float = 0.0
    task_seconds: float = 0.0
    prefill: Phase = field(default_factory=Phase)
    decode: Phase = field(default_factory=Phase)


@dataclass(frozen=True)
class EngineLoad:
    """Sequences in a batch, sequences that find no free row, and the fullest batch's share of its cache rows, 0 to 1."""

    running: int
    waiting: int
    cache_use: float


class Engine:
    """@param prefix_bytes: memory for cached prefixes."""

    def __init__(self, device: torch.device, limits: BatchLimits, prefix_bytes: int):
        self.device = device
        self.counters = EngineCounters()
        self.prefixes = PrefixCache(prefix_bytes)
        self._limits = limits
        self._batches: dict[int, SampleBatch] = {}
        self._spare: dict[ModelConfig, list[KvRows]] = {}
        self._tasks: deque[EngineTask] = deque()
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        # Jobs whose progress somebody hears of.
        self._told: list[SampleJob] = []
        # Seconds that sampling is behind training.
        self._owed = 0.0
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Ends after the slice in progress; queued work fails as cancelled."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def submit(self, job: SampleJob) -> None:
        self._post(lambda: self._take_in(job))

    def run(self, task: EngineTask) -> None:
        """Queues a task; tasks run one after the other in the order of this call."""
        self._post(lambda: self._tasks.append(task))

    def commit(self, snapshot: Snapshot) -> None:
        """Engine thread: the snapshot is about to serve. Here nothing has to be handed over."""

    def drop_snapshot(self, snapshot: Snapshot) -> None:
        self._post(lambda: self.prefixes.drop_snapshot(snapshot.uid))

    @property
    def phase(self) -> str:
        return "train" if self._tasks else "sample" if self._batches else "idle"

    @property
    def active_sequences(self) -> int:
        return sum(len(batch.rows) for batch in list(self._batches.values()))

    @property
    def waiting_sequences(self) -> int:
        return sum(len(batch.waiting) for batch in list(self._batches.values()))

    @property
    def cache_bytes(self) -> int:
        return sum(batch.cache.bytes for batch in list(self._batches.values()))

    def load(self) -> EngineLoad:
        """What sampling bears now. Any thread: its numbers may be a step apart."""
        rows = self._limits.rows
        batches = [(len(batch.rows), len(batch.waiting)) for batch in list(self._batches.values())]
        return EngineLoad(
            running=sum(running for running, _ in batches),
            # Those that a row is free for join with the next steps.
            waiting=sum(max(0, waiting - max(0, rows - running)) for running, waiting in batches),
            cache_use=max((running / rows for running, _ in batches), default=0.0),
        )

    def _post(self, call: Callable[[], None]) -> None:
        if self._stopping:
            raise WorkerError("busy", "the worker is shutting down", status=503, retry_after_s=5)
        self._inbox.append(call)
        self._wake.set()

    def _loop(self) -> None:
        while not self._stopping:
            try:
                self._turn()
            except Exception:
                # Work reports its own failures; what arrives here came from a callback. The engine serves on.
                log.exception("an engine callback failed")
        self._abandon()

    def _turn(self) -> None:
        self._wake.clear()
        while self._inbox:
            self._inbox.popleft()()
        if not self._batches and not self._tasks:
            self._wake.wait()
            return
        started = time.perf_counter()
        if self._batches and (self._owed > 0 or not self._tasks):
            self._sample_step()
            spent = time.perf_counter() - started
            self.counters.sample_seconds += spent
            self._owed = max(0.0, self._owed - spent)
        elif self._tasks:
            self._task_slice(self._tasks[0])
            spent = time.perf_counter() - started
            self.counters.task_seconds += spent
            self._owed += spent

    def _abandon(self) -> None:
        error = WorkerError("cancelled", "the worker is shutting down")
        for task in self._tasks:
            if task.generator is not None:
                task.generator.close()
            task.on_end(None, error)
        self._tasks.clear()
        for batch in self._batches.values():
            for sequence in [*batch.rows, *batch.waiting]:
                sequence.on_end(sequence, error)
        self._batches.clear()

    def _task_slice(self, task: EngineTask) -> None:
        try:
            if task.generator is None and not task.cancelled:
                task.generator = task.start()
            if task.cancelled:
                if task.generator is not None:
                    task.generator.throw(WorkerError("cancelled", f"{task.name} was cancelled"))
                raise WorkerError("cancelled", f"{task.name} was cancelled")
            next(task.generator)
        except StopIteration as end:
            self._end_task(task, end.value, None)
        except Exception as error:
            typed = as_worker_error(error)
            if typed.code == "internal":
                log.exception("task %s failed", task.name)
            self._end_task(task, None, typed)

    def _end_task(self, task: EngineTask, result: Any, error: WorkerError | None) -> None:
        self._tasks.popleft()
        self.counters.tasks_ended += 1
        task.on_end(result, error)

    def _take_in(self, job: SampleJob) -> None:
        """A sample that can't begin is answered too: whoever asked would ask for its future for ever."""
        if job.cancelled:
            return
        try:
            self._start_job(job)
        except Exception as error:
            log.exception("a sample could not begin")
            job.cancel()
            job.on_end(None, as_worker_error(error))

    def _start_job(self, job: SampleJob) -> None:
        batch = self._batches.get(job.snapshot.uid)
        if batch is None:
            config = job.snapshot.weights.config
            spare = self._spare.get(config)
            cache = spare.pop() if spare else KvRows(config, self.device, job.snapshot.weights.compute)
            batch = SampleBatch(job.snapshot, cache, self.prefixes, self._limits, job.token_bytes)
            self._batches[job.snapshot.uid] = batch
        left = job.num_samples
        if job.on_step is not None:
            self._told.append(job)

        def ended(sequence: Sequence, error: Exception | None) -> None:
            nonlocal left
            left -= 1
            self._count(sequence)
            if error is not None and not job.cancelled:
                job.cancel()
                job.on_end(None, as_worker_error(error))
            elif left == 0 and not job.cancelled:
                self._finish_job(job)

        for sample in range(job.num_samples):
            sequence = Sequence(job.prompt, job.params, sample, ended)
            job.sequences.append(sequence)
            batch.waiting.append(sequence)

    def _finish_job(self, job: SampleJob) -> None:
        job.finished = True
        result: dict = {
            "sequences": [
                {
                    "stop_reason": sequence.stop_reason,
                    "tokens": sequence.tokens,
                    "logprobs": [round(logprob, 7) for logprob in sequence.logprobs],
                }
                for sequence in job.sequences
            ],
            "weight_version": job.snapshot.version,
            "prompt_cache_hit_tokens": job.sequences[0].cached,
        }
        try:
            if job.prompt_logprobs or job.top_prompt_logprobs:
                weights, top, last = job.snapshot.weights, job.top_prompt_logprobs, job.prompt_logprobs_last
                result |= prompt_logprobs(weights, job.prompt, top, last)
        except Exception as error:
            job.on_end(None, as_worker_error(error))
            return
        job.on_end(result, None)

    def _sample_step(self) -> None:
        for uid, batch in list(self._batches.items()):
            started = time.perf_counter()
            try:
                drawn = batch.step()
                self.counters.sampled_tokens += drawn
            except Exception as error:
                log.exception("sampling step failed")
                for sequence in [*batch.rows, *batch.waiting]:
                    sequence.on_end(sequence, error)
                del self._batches[uid]
                continue
            self.counters.sample_steps += 1
            spent = time.perf_counter() - started
            if batch.read:
                self.counters.prefill.add(batch.read, spent)
            else:
                self.counters.decode.add(drawn, spent)
            if batch.idle:
                del self._batches[uid]
                # One spare cache per shape: the next version's batch takes it over instead of allocating.
                self._spare[batch.snapshot.weights.config] = [batch.cache]
        if self._told:
            self._tell()

    def _tell(self) -> None:
        self._told = [job for job in self._told if not job.cancelled and not job.finished]
        for job in self._told:
            job.on_step(job.sequences)

    def _count(self, sequence: Sequence) -> None:
        self.counters.sequences_ended += 1
        self.counters.prompt_tokens += len(sequence.prompt)
        self.counters.cached_prompt_tokens += sequence.cached
