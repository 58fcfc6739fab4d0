#!/bin/bash
. /tests/score.sh
score /app/draft.txt apple > /logs/verifier/reward.json
