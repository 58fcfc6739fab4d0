#!/bin/bash
. /tests/score.sh
score /app/final.txt APPLE > /logs/verifier/reward.json
