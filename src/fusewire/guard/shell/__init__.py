"""Read command lines: a lexer and a parser (`tree`), and a walk through what they found.

    text -> lexer, parser -> tree -> walk (world, expansion, builtins) -> a runner gets each command that would run

Two runners use it: `commands` collects words, on which constraints match; the guard wants to know what happens to
files. Everything is in the standard library, nothing is ever executed, no input raises, and the work is bounded.
"""
