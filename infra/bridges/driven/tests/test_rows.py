from __future__ import annotations

import unittest

from rolldeck_driven.errors import BatchError
from rolldeck_driven.rows import batch_metrics, left_out, nothing_to_train, reward_of, rows_of
from rolldeck_driven.testing import asked, finished, rollout


class RowsTest(unittest.TestCase):
    def test_the_response_begins_at_the_first_trained_token(self) -> None:
        [row] = rows_of(rollout((0, 0)), 99)
        self.assertEqual((row.prompt, row.response, row.mask), ([1, 2], [3, 4, 5, 6], [1, 1, 0, 1]))
        self.assertEqual(row.logprobs, [-0.5, -0.25, 0.0, -1.0])

    def test_without_a_trained_token_one_row_stands_for_the_rollout(self) -> None:
        [row] = rows_of(rollout((0, 0), reward=None), 99)
        self.assertEqual((row.prompt, row.response, row.mask), ([1, 2, 3, 4, 5], [6], [0]))
        [row] = rows_of(None, 99)
        self.assertEqual((row.prompt, row.response, row.mask, row.logprobs), ([99], [99], [0], [0.0]))

    def test_an_unscored_rollout_leaves_its_group_out_and_no_other(self) -> None:
        batch = asked()
        for without in ({}, {(0, 1): rollout((0, 1), reward=None, ending="sandbox_lost")}):
            rollouts = {place: found for place, found in finished(batch).items() if place != (0, 1)} | without
            with self.subTest(missing=not without):
                left = left_out(batch, rollouts)
                self.assertEqual((left.unscored, left.instances), (((0, 1),), {0}))
                ending = "sandbox_lost" if without else "missing"
                counts = {"rolldeck/unscored": 1, "rolldeck/groups_left_out": 1}
                endings = {"rolldeck/ending/answer": 3, f"rolldeck/ending/{ending}": 1}
                self.assertEqual(batch_metrics(batch, rollouts, left), {**counts, **endings})

    def test_nothing_to_train_says_how_the_rollouts_ended(self) -> None:
        batch = asked()
        lost = finished(batch, reward=None, ending="model_server")
        said = str(nothing_to_train(batch, lost, left_out(batch, lost)))
        self.assertRegex(said, "step 1: .*4 of 4 rollouts have no reward .4 model_server")

    def test_what_was_not_sampled_whole_is_not_trained(self) -> None:
        row = rollout((0, 0))["rows"][0]
        cases = [
            ({**row, "logprobs": [None] * 6}, "no logprob"),
            ({**row, "mask": [1, 0, 1, 1, 0, 1]}, "no prompt"),
            ({**row, "mask": [0, 1]}, "6 tokens, 2 masks"),
        ]
        for broken, message in cases:
            with self.subTest(message), self.assertRaisesRegex(BatchError, f"r0-0.*{message}"):
                rows_of(rollout((0, 0)) | {"rows": [broken]}, 99)
        with self.assertRaisesRegex(BatchError, "not finite"):
            reward_of(rollout((0, 0), reward=float("nan")))
