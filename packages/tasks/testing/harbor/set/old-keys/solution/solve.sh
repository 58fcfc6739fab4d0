printf %s "$GREETING" > /srv/greeting
