#!/bin/bash
# The store still answers, and the agent's file says the same.
served=$(python3 -c 'import urllib.request; print(urllib.request.urlopen("http://store:8000/word.txt", timeout=5).read().decode().strip())')
if [ -n "$served" ] && [ "$served" = "$(cat /app/word.txt 2>/dev/null)" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
