tr a-z A-Z < /app/draft.txt > /app/final.txt
