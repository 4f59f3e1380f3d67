"""The marks in a command that `parallel` and `fd` put names in the place of."""

from __future__ import annotations

MARKS = ("{}", "{.}", "{/}", "{//}", "{/.}")


def filled(word: str, name: str) -> str:
    """`{}` the name, `{/}` without its folder, `{//}` the folder, `{.}` without its ending, `{/.}` both."""
    folder, slash, base = name.rstrip("/").rpartition("/")
    stem, dot, _ = base.rpartition(".")
    stem = stem if dot and stem else base
    word = word.replace("{//}", (folder or "/") if slash else ".").replace("{/.}", stem).replace("{/}", base)
    return word.replace("{.}", folder + slash + stem).replace("{}", name)
