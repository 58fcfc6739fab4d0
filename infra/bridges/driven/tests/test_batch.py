from __future__ import annotations

import unittest

from rolldeck_driven.batch import GroupedRow, Instance, ask_for, instance_named
from rolldeck_driven.errors import InputBatchError


def rows(*named: tuple[str, int, int]) -> list[GroupedRow]:
    return [GroupedRow(group, sample, Instance(0, index)) for group, sample, index in named]


def ask(*named: tuple[str, int, int], step: int = 7):
    return ask_for(step, rows(*named), group_field="uid", instance_field="rows[{}].rolldeck")


class BatchTest(unittest.TestCase):
    def test_one_instance_a_group_in_the_order_of_the_rows(self) -> None:
        batch = ask(("b", 1, 4), ("a", 0, 9), ("b", 0, 4), ("a", 1, 9))
        self.assertEqual(
            batch.request(6, None),
            {
                "trainerStep": 7,
                "instances": [{"taskSet": 0, "index": 4}, {"taskSet": 0, "index": 9}],
                "samples": 2,
                "policyVersion": 6,
                "deadlineMs": None,
            },
        )
        self.assertEqual(batch.places, ((0, 1), (1, 0), (0, 0), (1, 1)))

    def test_what_can_not_be_asked_for_names_its_field(self) -> None:
        cases = [
            ([("a", 0, 1), ("a", 1, 2)], r"rows\[1\].rolldeck: differs within the group a"),
            ([("a", 0, 1), ("a", 2, 1)], r"uid: group a has samples \[0, 2\], not 0 to 1"),
            ([("a", 0, 1), ("a", 1, 1), ("b", 0, 2)], "uid: group b has samples"),
            ([("a", 0, 1), ("a", 0, 1)], "uid: a sample is there twice"),
            ([("a", 0, 1), ("b", 0, 1)], "two groups of a batch name one instance"),
        ]
        for given, message in cases:
            with self.subTest(message), self.assertRaisesRegex(InputBatchError, message):
                ask(*given)

    def test_the_column_of_a_row_is_read_strictly(self) -> None:
        self.assertEqual(instance_named({"index": 3}, "row"), Instance(0, 3))
        self.assertEqual(instance_named({"index": 3, "task_set": 2}, "row"), Instance(2, 3))
        for named, message in [(None, "row: is missing"), ({}, "row.index: is None"), ({"index": True}, "is True")]:
            with self.subTest(message), self.assertRaisesRegex(InputBatchError, message):
                instance_named(named, "row")
