"""Follow lists, pipelines, groups, branches, loops and functions; where the way is not certain, both ways."""

from __future__ import annotations

from fusewire.guard.shell import tree
from fusewire.guard.shell.builtins import tested
from fusewire.guard.shell.expansion import VALUE_LIMIT, fields_of, pattern_of, text_of
from fusewire.guard.shell.read_only import LOOKING
from fusewire.guard.shell.values import UNKNOWN
from fusewire.guard.shell.world import World, distinct
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.guard.shell.walk import Walk

#: Functions, scripts and substitutions inside each other.
DEPTH = 24

#: Turns of a loop that are followed.
_TURNS = 1000


def _sequence(walk: Walk, node: tree.Sequence, worlds: list[World]) -> list[World]:
    for item, background in node.items:
        going = [world for world in worlds if not world.flow]
        stopped = [world for world in worlds if world.flow]
        if not going:
            break
        if background:
            walk.run(item, [world.copy() for world in going])
            for world in going:
                world.status = True
            continue
        worlds = walk.run(item, going) + stopped
        for world in worlds if node is walk.top and type(item) is tree.Simple else ():
            if world.status is False and "errexit" in world.options:
                world.flow = world.flow or "exit"
    return worlds


def _and_or(walk: Walk, node: tree.AndOr, worlds: list[World]) -> list[World]:
    worlds = walk.run(node.first, worlds)
    for operator, item in node.rest:
        skips = operator == "||"
        result: list[World] = []
        for world in worlds:
            if world.flow or world.status is skips:
                result.append(world)
                continue
            before = world.copy() if world.status is None else None
            after = walk.run(item, [world])
            result += after
            if before is not None and any(before.differs(one) for one in after):
                before.status = skips
                result.append(before)
        worlds = distinct(result)
    return worlds


def _pipeline(walk: Walk, node: tree.Pipeline, worlds: list[World]) -> list[World]:
    if len(node.commands) == 1:  # only negated: the shell itself runs it
        worlds = walk.run(node.commands[0], worlds)
    else:
        for world in worlds:
            _piped(walk, node.commands, world)
    for world in worlds if node.negated else ():
        world.status = None if world.status is None else not world.status
    return worlds


def _piped(walk: Walk, commands: list[tree.Node], world: World) -> None:
    joint = World("")
    joint.out = world.stdin  # type: ignore[assignment]
    for at, command in enumerate(commands, 1):
        inner = world.copy()
        inner.out, inner.stdin = "", joint.out
        read = not all(map(_only_prints, commands[at:]))
        walk.heard += read
        walk.join(joint, walk.run(command, [inner]))
        walk.heard -= read
    world.out = cut(world.out + joint.out)
    world.status = None if "pipefail" in world.options else joint.status


def _only_prints(node: tree.Node) -> bool:
    """Whether a command turns its input into another output and does nothing else with it."""
    name = node.words[0] if isinstance(node, tree.Simple) and node.words else None
    return isinstance(name, str) and (name in LOOKING or name in ("sort", "uniq"))


def _group(walk: Walk, node: tree.Group, worlds: list[World]) -> list[World]:
    if not node.subshell:
        return walk.run(node.body, worlds)
    for world in worlds:
        walk.join(world, walk.run(node.body, [world.copy()]))
    return worlds


def _if(walk: Walk, node: tree.If, worlds: list[World]) -> list[World]:
    done: list[World] = []
    for condition, body in node.branches:
        worlds = walk.run(condition, worlds)
        done += [world for world in worlds if world.flow]
        going = [world for world in worlds if not world.flow]
        taken = [world if world.status else world.copy() for world in going if world.status is not False]
        worlds = [world for world in going if world.status is not True]
        done += walk.run(body, taken) if taken else []
    if node.otherwise is not None and worlds:
        worlds = walk.run(node.otherwise, worlds)
    return _unsure(done + worlds)


def _while(walk: Walk, node: tree.While, worlds: list[World]) -> list[World]:
    done: list[World] = []
    unsure = 0
    for _ in range(_TURNS):
        worlds = walk.run(node.condition, worlds)
        done += [world.copy() for world in worlds if world.flow or world.status in (None, node.until)]
        going = [world for world in worlds if not world.flow and world.status is not node.until]
        unsure += any(world.status is None or world.stdin in (None, "", UNKNOWN) for world in going)
        if not going or unsure > 2:  # twice is enough to see what a turn leaves for the next
            return _unsure(done + going)
        worlds, left = _turn(walk, node.body, going)
        done += left
    return _unsure(done + worlds)


def _for(walk: Walk, node: tree.For, worlds: list[World]) -> list[World]:
    done: list[World] = []
    for world in worlds:
        values = world.positionals[1:] if node.words is None else fields_of(node.words, world, walk)
        if not node.name or len(values) > _TURNS:  # `for ((...))`
            values = [*values[:_TURNS], UNKNOWN] if node.name else [UNKNOWN, UNKNOWN]
        going = [world]
        for value in values:
            for one in going:
                one.variables[node.name] = value
            going, left = _turn(walk, node.body, going)
            done += left
        done += going
    return _unsure(done)


def _turn(walk: Walk, body: tree.Node, worlds: list[World]) -> tuple[list[World], list[World]]:
    """One turn of a loop: the worlds that go on, and those that have left it."""
    walk.loops += 1
    worlds = walk.run(body, worlds)
    walk.loops -= 1
    going = [world for world in worlds if world.flow in ("", "continue")]
    left = [world for world in worlds if world.flow not in ("", "continue")]
    for world in worlds:
        world.flow = "" if world.flow in ("break", "continue") else world.flow
    return going, left


def _case(walk: Walk, node: tree.Case, worlds: list[World]) -> list[World]:
    done: list[World] = []
    for world in worlds:
        value = text_of(node.word, world, walk)
        known = UNKNOWN not in value and (isinstance(node.word, str) or not walk.literal)
        for patterns, body in node.branches:
            texts = [pattern_of(pattern, world, walk) for pattern in patterns]
            sure = known and not any(UNKNOWN in text for text in texts)
            if sure and any(matches(value, text) for text in texts):
                done += walk.run(body, [world])
                break
            if not sure:
                done += walk.run(body, [world.copy()])
        else:
            done.append(world)
    return _unsure(done)


def _function(walk: Walk, node: tree.Function, worlds: list[World]) -> list[World]:
    for world in worlds:
        world.functions[node.name] = node.body
        world.status = True
    return worlds


def call(walk: Walk, body: tree.Node, words: list[str], world: World) -> list[World]:
    if walk.depth >= DEPTH:
        walk.runner.unread("eval " + " ".join(words), world, walk)
        return [world]
    walk.depth += 1
    worlds = walk.called(lambda: walk.run(body, [world]), words[1:], world)
    walk.depth -= 1
    return worlds


def _test(walk: Walk, node: tree.Test, worlds: list[World]) -> list[World]:
    for world in worlds:
        operands = [text_of(word, world, walk) for word in node.words]
        unary = len(operands) - (operands[:1] == ["!"]) == 2 and operands[-2][:1] == "-"
        world.status = tested(operands, walk, world) if unary else None
    return worlds


def _unread(walk: Walk, node: tree.Unread, worlds: list[World]) -> list[World]:
    if worlds and id(node) not in walk.unread_nodes:  # once is enough, however many loops are around it
        walk.unread_nodes.add(id(node))
        walk.runner.unread(node.text, worlds[0], walk)
    return worlds


def _unsure(worlds: list[World]) -> list[World]:
    """Behind a compound command its status is not known: any of its commands may have been the last."""
    for world in worlds:
        world.status = None
    return worlds


def cut(text: str, limit: int = VALUE_LIMIT) -> str:
    return text if len(text) <= limit else UNKNOWN


#: How each node but a simple command is walked through.
METHODS: dict[type, Any] = {
    tree.Sequence: _sequence,
    tree.AndOr: _and_or,
    tree.Pipeline: _pipeline,
    tree.Group: _group,
    tree.If: _if,
    tree.While: _while,
    tree.For: _for,
    tree.Case: _case,
    tree.Function: _function,
    tree.Test: _test,
    tree.Unread: _unread,
}
