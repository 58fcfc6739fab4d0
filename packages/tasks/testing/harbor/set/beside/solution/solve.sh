python3 -c 'import urllib.request; print(urllib.request.urlopen("http://store:8000/word.txt").read().decode().strip())' > /app/word.txt
