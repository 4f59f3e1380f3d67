"""Real coding agents, run offline against models that say what a script tells them to.

Nothing here knows Fusewire but `project`; nothing here is a stand-in for a part of Fusewire.
"""
