"""What goes wrong on the server's side ends in an answer or a cut connection, never in a client that waits for ever."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
from tiny_model import SyncEngine, tiny_weights

from rolldeck_gpu_worker.engine import SampleJob
from rolldeck_gpu_worker.http_server import HttpServer, Request, Response
from rolldeck_gpu_worker.sampling import SamplingParams
from rolldeck_gpu_worker.snapshots import Snapshot

PARAMS = SamplingParams(4, 1.0, 1.0, -1, 0, frozenset(), ())


class NoMemory:
    """Weights whose cache can't be made."""

    @property
    def config(self):
        raise MemoryError("can't allocate memory")


def test_a_sample_that_can_not_begin_is_answered():
    done, answers = threading.Event(), []

    def ended(result, error) -> None:
        answers.append((result, error))
        done.set()

    with SyncEngine() as sync:
        sync.engine.submit(SampleJob(Snapshot("m", 0, NoMemory()), np.asarray([1]), PARAMS, 2, ended))
        assert done.wait(30)
        # And the engine serves on.
        assert sync.sample(Snapshot("m", 0, tiny_weights()), [[1, 2]], max_tokens=2)[0]["sequences"]
    ((result, error),) = answers
    assert result is None and "can't allocate memory" in error.detail


async def _exchange(handler) -> bytes:
    server = HttpServer(handler)
    port = await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await server.close(0)


def test_an_answer_that_can_not_be_written_cuts_its_connection():
    async def handler(_: Request) -> Response:
        return Response(headers={"X-Name": "\N{SNOWMAN}"})

    assert asyncio.run(_exchange(handler)) == b""


def test_a_stream_that_fails_cuts_its_connection():
    async def parts():
        yield b"some"
        raise OSError("the disk is gone")

    async def handler(_: Request) -> Response:
        return Response(stream=parts(), length=100)

    # Of the hundred bytes that were announced, and nothing of the next answer.
    assert asyncio.run(_exchange(handler)).count(b"HTTP/1.1") <= 1
