mkdir -p /app/out
python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))' > /app/out/bytes.bin
echo "stays behind" > /app/notes.txt
echo "stays behind" > /app/out/junk.tmp
