from __future__ import annotations

import unittest
from unittest.mock import patch

from rolldeck_driven.api import RolldeckApi, connection
from rolldeck_driven.errors import ApiError, BridgeError, RunEndedError, UnreachableError
from rolldeck_driven.lease import TrainerLease
from tests.scripted_server import serving


def api(url: str, patience_s: float = 30.0, waits: list[float] | None = None) -> RolldeckApi:
    sleep = (waits if waits is not None else []).append
    return RolldeckApi(url, "rd_secret", "run 1", patience_s=patience_s, sleep=sleep)


class ApiTest(unittest.TestCase):
    def test_a_request_is_sent_again_until_it_is_answered(self) -> None:
        waits: list[float] = []
        busy = (503, {"detail": "starting"})
        with serving(None, busy, (200, b'{"batchId'), (200, {"batchId": "b1", "state": "requested"})) as (url, script):
            self.assertEqual(api(url, waits=waits).request_batch({"trainerStep": 3}), "b1")
        sent = ("POST", "/api/v1/runs/run%201/batches", {"trainerStep": 3}, "Bearer rd_secret")
        self.assertEqual(script.asked, [sent] * 4)
        self.assertEqual(len(waits), 3)
        self.assertLess(waits[0], waits[2])

    def test_a_refusal_is_told_at_once_with_its_fields_and_without_the_token(self) -> None:
        issue = {"path": "instances[0].index", "message": "has 4 instances"}
        said = r"step 3: 400 The input is wrong.; instances\[0\].index: has 4"
        with serving((400, {"detail": "The input is wrong.", "errors": [issue]})) as (url, script):
            with self.assertRaisesRegex(ApiError, said) as caught:
                api(url).request_batch({"trainerStep": 3})
        self.assertEqual(len(script.asked), 1)
        self.assertNotIn("rd_secret", str(caught.exception))

    def test_a_server_that_stays_away_is_named_with_the_cause(self) -> None:
        with self.assertRaisesRegex(UnreachableError, "no answer for 0 s.*refused"):
            api("http://127.0.0.1:9", patience_s=0).run()

    def test_the_token_follows_no_redirect(self) -> None:
        with serving((307, {}), (200, {})) as (url, script), self.assertRaisesRegex(ApiError, "307"):
            api(url).run()
        self.assertEqual(len(script.asked), 1)

    def test_settings_that_can_not_work_are_refused(self) -> None:
        for url, token, run in [("localhost:3000", "t", "r"), ("http://h", "", "r"), ("http://h", "t", "")]:
            with self.subTest(url=url, token=token, run=run), self.assertRaises(ValueError):
                RolldeckApi(url, token, run)
        with self.assertRaisesRegex(ValueError, "lease_s"):
            TrainerLease(api("http://h"), lease_s=1)

    def test_what_is_missing_in_the_environment_is_named(self) -> None:
        with patch.dict("os.environ", {"ROLLDECK_URL": "http://h", "ROLLDECK_TOKEN": ""}, clear=True):
            with self.assertRaisesRegex(BridgeError, "set ROLLDECK_TOKEN, ROLLDECK_RUN"):
                connection()


class LeaseTest(unittest.TestCase):
    def test_a_run_paused_for_want_of_a_trainer_goes_on(self) -> None:
        paused = (200, {"status": "paused"})
        run = (200, {"status": "paused", "reason": "the trainer's lease has ended without a sign of it"})
        with serving(paused, run, (200, {"status": "queued"})) as (url, script):
            lease = TrainerLease(api(url))
            lease.begin(2)
            lease.check()
            lease.check()
            lease.close()
        self.assertEqual([path.rsplit("/", 1)[1] for _, path, *_ in script.asked], ["heartbeat", "run%201", "resume"])
        self.assertEqual(script.asked[0][2], {"leaseMs": 60_000, "policyVersion": 2})

    def test_a_pause_that_a_person_asked_for_stays(self) -> None:
        with serving((200, {"status": "paused"}), (200, {"status": "paused", "reason": None})) as (url, script):
            lease = TrainerLease(api(url))
            lease.begin(0)
            lease.check()
            lease.close()
        self.assertEqual([method for method, *_ in script.asked], ["POST", "GET"])

    def test_a_run_that_is_over_ends_the_wait(self) -> None:
        with serving((200, {"status": "stopped"})) as (url, _):
            lease = TrainerLease(api(url))
            lease.begin(0)
            with self.assertRaisesRegex(RunEndedError, "is stopped"):
                lease.check()
            lease.close()
