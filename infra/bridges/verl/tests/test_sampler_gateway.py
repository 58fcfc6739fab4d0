"""VeRL's engines as an HTTP endpoint. Needs aiohttp, which comes with VeRL."""

from __future__ import annotations

import importlib.util
import json
import socket
import unittest
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

from rolldeck_driven.errors import BridgeError


class Engine:
    """Answers each request with what it was given, as VeRL's client does."""

    def __init__(self, *outputs: Any):
        self.asked: list[dict[str, Any]] = []
        self._outputs = list(outputs)

    async def generate(self, **asked: Any) -> Any:
        self.asked.append(asked)
        output = self._outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return output


def sampled(*tokens: int, reason: str = "completed") -> SimpleNamespace:
    return SimpleNamespace(token_ids=list(tokens), log_probs=[-0.5 for _ in tokens], stop_reason=reason)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


@unittest.skipUnless(importlib.util.find_spec("aiohttp"), "needs aiohttp")
class SamplerGatewayTest(unittest.TestCase):
    def serve(self, engine: Engine, key: str | None = None) -> str:
        from rolldeck_verl.sampler_gateway import ListenAddress, SamplerGateway

        port = free_port()
        gateway = SamplerGateway(engine, ListenAddress("127.0.0.1", port, key), "policy")
        gateway.start()
        self.addCleanup(gateway.close)
        return f"http://127.0.0.1:{port}"

    def post(self, url: str, body: Any, **headers: str) -> tuple[int, Any]:
        sent = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(sent, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def test_ids_go_in_and_ids_with_logprobs_come_out(self) -> None:
        engine = Engine(sampled(5, 2), sampled(5, 6, 7))
        url = self.serve(engine)
        body = {"prompt": [1, 9], "max_tokens": 3, "temperature": 0.5, "stop_token_ids": [2], "seed": 4}
        status, answer = self.post(url, body, **{"x-rolldeck-affinity": "r1"})
        self.assertEqual(status, 200)
        [choice] = answer["choices"]
        self.assertEqual((choice["token_ids"], choice["finish_reason"]), ([5, 2], "stop"))
        self.assertEqual(choice["logprobs"]["token_logprobs"], [-0.5, -0.5])
        self.assertEqual(answer["usage"], {"prompt_tokens": 2, "completion_tokens": 2})
        [asked] = engine.asked
        self.assertEqual((asked["request_id"], asked["prompt_ids"]), ("r1", [1, 9]))
        sampling = {"max_tokens": 3, "temperature": 0.5, "top_p": 1.0, "top_k": -1, "seed": 4, "stop_token_ids": [2]}
        self.assertEqual(asked["sampling_params"], {**sampling, "logprobs": True, "repetition_penalty": 1.0})
        _, cut = self.post(url, body)
        self.assertEqual(cut["choices"][0]["finish_reason"], "length")

    def test_what_was_aborted_is_to_be_asked_again_and_what_failed_is_told(self) -> None:
        url = self.serve(Engine(sampled(5, reason="aborted"), sampled(), RuntimeError("out of memory")))
        body = {"prompt": [1], "max_tokens": 2}
        self.assertEqual([self.post(url, body)[0] for _ in range(2)], [503, 503])
        status, answer = self.post(url, body)
        self.assertEqual((status, answer["error"]["message"]), (500, "RuntimeError: out of memory"))

    def test_a_wrong_request_names_its_field_and_reaches_no_engine(self) -> None:
        engine = Engine()
        url = self.serve(engine)
        cases = [
            ([1], "no JSON object"),
            ({"prompt": "text"}, "prompt: give token ids"),
            ({"prompt": [True], "max_tokens": 1}, "prompt: give token ids"),
            ({"prompt": [1]}, "max_tokens"),
            ({"prompt": [1], "max_tokens": 1, "stream": True}, "stream"),
            ({"prompt": [1], "max_tokens": 1, "temperature": "hot"}, "temperature: give a number"),
            ({"prompt": [1], "max_tokens": 1, "stop_token_ids": ["a"]}, "stop_token_ids"),
        ]
        for body, message in cases:
            with self.subTest(message):
                status, answer = self.post(url, body)
                self.assertEqual(status, 400)
                self.assertIn(message, answer["error"]["message"])
        self.assertEqual(engine.asked, [])

    def test_a_key_is_asked_for_where_one_is_set(self) -> None:
        engine = Engine(sampled(5))
        url = self.serve(engine, key="secret")
        body = {"prompt": [1], "max_tokens": 1}
        self.assertEqual(self.post(url, body)[0], 401)
        self.assertEqual(self.post(url, body, authorization="Bearer other")[0], 401)
        self.assertEqual(self.post(url, body, authorization="Bearer secret")[0], 200)

    def test_where_it_listens(self) -> None:
        from rolldeck_verl.sampler_gateway import ListenAddress, listen_address

        self.assertIsNone(listen_address({}))
        inside = {"ROLLDECK_SAMPLER_LISTEN": "127.0.0.1:80"}
        self.assertEqual(listen_address(inside), ListenAddress("127.0.0.1", 80, None))
        outside = {"ROLLDECK_SAMPLER_LISTEN": "0.0.0.0:80"}
        with self.assertRaisesRegex(BridgeError, "ROLLDECK_SAMPLER_KEY"):
            listen_address(outside)
        keyed = listen_address(outside | {"ROLLDECK_SAMPLER_KEY": "k"})
        self.assertEqual(keyed, ListenAddress("0.0.0.0", 80, "k"))
        for text in ("80", "host:", "host:0", "host:http"):
            with self.subTest(text), self.assertRaisesRegex(BridgeError, "<host>:<port>"):
                listen_address({"ROLLDECK_SAMPLER_LISTEN": text})

    def test_an_address_that_is_taken_is_named(self) -> None:
        url = self.serve(Engine())
        from rolldeck_verl.sampler_gateway import ListenAddress, SamplerGateway

        port = int(url.rsplit(":", 1)[1])
        with self.assertRaisesRegex(BridgeError, f"127.0.0.1:{port}"):
            SamplerGateway(Engine(), ListenAddress("127.0.0.1", port, None), "policy").start()
