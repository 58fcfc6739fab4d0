#!/bin/bash
python3 -c 'print(sum(map(int, open("numbers.txt"))))' > /app/total.txt
