echo apple > /app/draft.txt
