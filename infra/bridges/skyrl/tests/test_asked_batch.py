from __future__ import annotations

import unittest

from rolldeck_driven.batch import COLUMN
from rolldeck_driven.errors import InputBatchError

from rolldeck_skyrl.asked_batch import asked_batch, dataset_row
from tests.sample_batches import input_batch


class AskedBatchTest(unittest.TestCase):
    def test_one_instance_a_group_and_samples_by_repetition(self) -> None:
        batch = asked_batch(input_batch(groups=2, samples=3, step=7))
        asked = batch.request(6, None)
        self.assertEqual((asked["trainerStep"], asked["samples"]), (7, 3))
        self.assertEqual(asked["instances"], [{"taskSet": 0, "index": 10}, {"taskSet": 0, "index": 11}])
        self.assertEqual(batch.places, ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)))

    def test_rows_of_the_data_set_name_their_instance(self) -> None:
        given = input_batch(groups=1, samples=1)
        given["env_extras"] = [{key: value for key, value in dataset_row(4, task_set=2).items() if key == COLUMN}]
        self.assertEqual(asked_batch(given).request(0, 5)["instances"], [{"taskSet": 2, "index": 4}])

    def test_what_can_not_be_asked_for_names_its_field(self) -> None:
        def with_(**changed):
            return {**input_batch(), **changed}

        ids = input_batch()["trajectory_ids"]
        other = input_batch()["env_extras"]
        cases = [
            (with_(batch_metadata=None), "batch_metadata"),
            (input_batch(phase="eval"), "eval_interval=-1"),
            (input_batch(step=0), "global_step"),
            (with_(trajectory_ids=None), "trajectory_ids"),
            (with_(env_extras=[{}] * 4), r"env_extras\[0\].rolldeck: is missing"),
            (with_(env_extras=[other[0], other[2], *other[2:]]), r"env_extras\[1\].rolldeck: differs within"),
            (with_(trajectory_ids=[ids[0], ids[0], *ids[2:]]), "trajectory_ids: group 1 has samples"),
        ]
        for given, message in cases:
            with self.subTest(message), self.assertRaisesRegex(InputBatchError, message):
                asked_batch(given)
