"""What people and programs read. Everything here is made from what is stored; nothing is written."""
