# End at once, with so many children that hold the pipes and never say anything.
for _ in $(seq "$1"); do sleep 60 & done
echo done
exit 3
