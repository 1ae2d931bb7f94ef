cd /home/somebody/detent
