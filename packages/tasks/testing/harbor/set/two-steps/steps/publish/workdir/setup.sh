echo "in capitals" > style.txt
