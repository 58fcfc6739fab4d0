"""The batch that VeRL's trainer gets. Needs VeRL."""

from __future__ import annotations

import importlib.util
import unittest

from rolldeck_driven.errors import BatchError
from rolldeck_driven.testing import asked, finished, rollout

UIDS = ["u", "u", "v", "v"]


@unittest.skipUnless(importlib.util.find_spec("verl"), "needs VeRL")
class DataProtoTest(unittest.TestCase):
    def converted(self, rollouts, prompt=4, response=6):
        from rolldeck_verl.data_proto import Widths, data_proto

        return data_proto(asked(), rollouts, UIDS, Widths(prompt, response), pad_token_id=99)

    def test_prompts_are_padded_on_the_left_and_responses_on_the_right(self) -> None:
        batch = asked()
        given = {place: rollout(place, reward=float(place[1]) + 0.5) for place in reversed(batch.places)}
        output = self.converted(given)
        output.check_consistency()
        rows = {name: tensor[1].tolist() for name, tensor in output.batch.items()}
        self.assertEqual(rows["prompts"], [99, 99, 1, 2])
        self.assertEqual(rows["responses"], [3, 4, 5, 6, 99, 99])
        self.assertEqual(rows["input_ids"], [99, 99, 1, 2, 3, 4, 5, 6, 99, 99])
        self.assertEqual(rows["attention_mask"], [0, 0, 1, 1, 1, 1, 1, 1, 0, 0])
        self.assertEqual(rows["position_ids"], [0, 0, 0, 1, 2, 3, 4, 5, 5, 5])
        self.assertEqual(rows["response_mask"], [1, 1, 0, 1, 0, 0])
        self.assertEqual(rows["rollout_log_probs"], [-0.5, -0.25, 0.0, -1.0, 0.0, 0.0])
        self.assertEqual(rows["rm_scores"], [0.0, 0.0, 0.0, 1.5, 0.0, 0.0])
        self.assertEqual(output.non_tensor_batch["uid"].tolist(), UIDS)
        self.assertEqual(output.non_tensor_batch["__num_turns__"].tolist(), [4] * 4)
        self.assertEqual(output.non_tensor_batch["rolldeck_rollout"].tolist(), ["r0-0", "r0-1", "r1-0", "r1-1"])

    def test_the_group_of_an_unscored_rollout_has_mask_0_and_no_advantage(self) -> None:
        from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

        given = finished(asked()) | {(0, 1): rollout((0, 1), reward=None, ending="sandbox_lost")}
        given[1, 0] = rollout((1, 0), reward=0.0)
        output = self.converted(given)
        self.assertEqual(output.batch["response_mask"].sum(-1).tolist(), [0, 0, 3, 3])
        advantages, _ = compute_grpo_outcome_advantage(
            output.batch["rm_scores"], output.batch["response_mask"], output.non_tensor_batch["uid"]
        )
        self.assertEqual(advantages[:2].abs().sum().item(), 0.0)
        self.assertGreater(advantages[3].sum().item(), 0.0)
        self.assertEqual(output.meta_info["timing"]["rolldeck/groups_left_out"], 1)

    def test_what_is_left_out_may_be_of_any_length(self) -> None:
        long = rollout((0, 1), reward=None, ending="worker_lost")
        long["rows"] = [{**row, **{name: row[name] * 9 for name in row}} for row in long["rows"]]
        output = self.converted(finished(asked()) | {(0, 1): long})
        self.assertEqual(output.batch["responses"][1].tolist(), [99] * 6)
        self.assertEqual(output.batch["attention_mask"][1].tolist(), [0, 0, 0, 1, 1, 0, 0, 0, 0, 0])

    def test_nothing_is_cut_and_what_can_not_be_trained_is_an_error(self) -> None:
        whole = finished(asked())
        cases = [
            (whole, {"response": 3}, r"response has 4 tokens .*response_length is 3: raise data.max_response_length"),
            (whole, {"prompt": 1}, "prompt has 2 tokens"),
            (whole | {(0, 1): rollout((0, 1), rows=2)}, {}, "r0-1 has 2 rows"),
            (finished(asked(), reward=None, ending="worker_lost"), {}, "no token can be trained.*4 worker_lost"),
        ]
        for given, widths, message in cases:
            with self.subTest(message), self.assertRaisesRegex(BatchError, message):
                self.converted(given, **widths)
