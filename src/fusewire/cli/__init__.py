"""The command line: words for people. One file a group of commands, loaded when one of them is called."""
