# Stop, and be able to do nothing at all; a child is stopped as well.
sleep 60 &
kill -STOP $!
echo ready
kill -STOP $$
