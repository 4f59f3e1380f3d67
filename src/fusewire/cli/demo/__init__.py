"""The bundled demonstrations: a scripted agent, its project, and the scenes."""
