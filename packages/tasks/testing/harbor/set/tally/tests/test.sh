#!/bin/bash
echo "checking in $PWD"
python3 /tests/check_total.py
