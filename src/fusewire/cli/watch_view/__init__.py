"""`fusewire watch`: a project's panel in a terminal, or line by line. It only looks: nothing is changed from here."""
