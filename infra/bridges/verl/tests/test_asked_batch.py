from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any

from rolldeck_driven.errors import InputBatchError

from rolldeck_verl.asked_batch import COLUMN, asked_batch, dataset_row


def prompts(meta: dict[str, Any] | None = None, **columns: Any) -> SimpleNamespace:
    """What `RayPPOTrainer` gives for two rows of its data set, sampled twice each."""
    named = [dataset_row(index)[COLUMN] for index in (10, 10, 11, 11)]
    given = {"uid": ["u", "u", "v", "v"], COLUMN: named, **columns}
    kept = {name: column for name, column in given.items() if column is not None}
    return SimpleNamespace(meta_info={"global_steps": 3} if meta is None else meta, non_tensor_batch=kept)


class AskedBatchTest(unittest.TestCase):
    def test_one_instance_a_uid_and_samples_in_the_order_of_the_rows(self) -> None:
        batch = asked_batch(prompts())
        asked = batch.request(2, None)
        self.assertEqual((asked["trainerStep"], asked["samples"]), (3, 2))
        self.assertEqual(asked["instances"], [{"taskSet": 0, "index": 10}, {"taskSet": 0, "index": 11}])
        self.assertEqual(batch.places, ((0, 0), (0, 1), (1, 0), (1, 1)))

    def test_another_uid_for_the_same_rows_is_the_same_request(self) -> None:
        again = asked_batch(prompts(uid=["x", "x", "y", "y"]))
        self.assertEqual(again, asked_batch(prompts()))

    def test_what_can_not_be_asked_for_names_its_field(self) -> None:
        cases = [
            (prompts({"global_steps": 3, "validate": True}), "trainer.test_freq=-1"),
            (prompts({}), "global_steps: is None"),
            (prompts({"global_steps": 0}), "global_steps: is 0"),
            (prompts(__do_sample__=[True] * 4), "remax"),
            (prompts(uid=None), "uid: is missing"),
            (prompts(**{COLUMN: None}), "rolldeck: is missing"),
            (prompts(**{COLUMN: [{}] * 4}), r"rolldeck\[0\].index: is None"),
            (prompts(uid=["u", "v", "v", "v"]), r"rolldeck\[2\]: differs within the group v"),
        ]
        for given, message in cases:
            with self.subTest(message), self.assertRaisesRegex(InputBatchError, message):
                asked_batch(given)
