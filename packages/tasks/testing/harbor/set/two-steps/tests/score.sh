# Shared by both steps: a reward for a file that holds exactly one text.
score() {
  if [ "$(cat "$1" 2>/dev/null)" = "$2" ]; then echo '{"reward": 1.0, "checked": 1}'; else echo '{"reward": 0.0, "checked": 1}'; fi
}
