from __future__ import annotations

import unittest

from rolldeck_driven.errors import BatchError
from rolldeck_driven.testing import asked, finished, rollout

from rolldeck_skyrl.generator_output import generator_output
from tests.sample_batches import input_batch


def converted(batch, rollouts, step_wise=False):
    ids = input_batch(len(batch.instances), batch.samples)["trajectory_ids"]
    return generator_output(batch, rollouts, ids, step_wise=step_wise, pad_token_id=99)


class GeneratorOutputTest(unittest.TestCase):
    def test_one_entry_a_prompt_in_the_order_of_the_input(self) -> None:
        batch = asked()
        rollouts = {place: rollout(place, reward=float(place[1])) for place in reversed(batch.places)}
        output = converted(batch, rollouts)
        self.assertEqual(output["prompt_token_ids"], [[1, 2]] * 4)
        self.assertEqual(output["response_ids"], [[3, 4, 5, 6]] * 4)
        self.assertEqual(output["loss_masks"], [[1, 1, 0, 1]] * 4)
        self.assertEqual(output["rollout_logprobs"], [[-0.5, -0.25, 0.0, -1.0]] * 4)
        self.assertEqual(output["rewards"], [0.0, 1.0, 0.0, 1.0])
        self.assertEqual([row["rollout_id"] for row in output["env_metrics"]], ["r0-0", "r0-1", "r1-0", "r1-1"])
        self.assertEqual([id.instance_id for id in output["trajectory_ids"]], ["0", "0", "1", "1"])
        self.assertIsNone(output["is_last_step"])
        self.assertEqual(output["rollout_metrics"]["rolldeck/unscored"], 0)

    def test_the_group_of_an_unscored_rollout_has_mask_0(self) -> None:
        batch = asked()
        rollouts = finished(batch) | {(0, 1): rollout((0, 1), reward=None, ending="sandbox_lost")}
        output = converted(batch, rollouts)
        self.assertEqual([sum(mask) for mask in output["loss_masks"]], [0, 0, 3, 3])
        self.assertEqual([len(ids) > 0 for ids in output["response_ids"]], [True] * 4)
        self.assertEqual(output["rollout_metrics"]["rolldeck/groups_left_out"], 1)

    def test_nothing_to_train_is_an_error(self) -> None:
        batch = asked()
        with self.assertRaisesRegex(BatchError, "4 of 4 rollouts have no reward"):
            converted(batch, finished(batch, reward=None, ending="model_server"))

    def test_several_rows_need_the_step_wise_mode_and_its_marks(self) -> None:
        batch = asked()
        rollouts = finished(batch) | {(0, 1): rollout((0, 1), rows=3, ending="length")}
        with self.assertRaisesRegex(BatchError, "r0-1 has 3 rows.*step_wise_trajectories=true"):
            converted(batch, rollouts)
        output = converted(batch, rollouts, step_wise=True)
        self.assertEqual(output["is_last_step"], [True, False, False, True, True, True])
        self.assertEqual(output["stop_reasons"], ["stop", "stop", "stop", "length", "stop", "stop"])
        self.assertEqual([id.repetition_id for id in output["trajectory_ids"]], [0, 1, 1, 1, 0, 1])
