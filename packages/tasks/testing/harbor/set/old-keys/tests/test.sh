if [ "$(cat /srv/greeting 2>/dev/null)" = "good day" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
exit 3
