"""Names of Python's modules: which are the same thing, which are constants, which change something."""

from __future__ import annotations

from fusewire.guard.code import python_effects as known

#: Other names of the same things.
_SAME = {
    "posix.": "os.",
    "nt.": "os.",
    "builtins.": "",
    "__builtins__.": "",
    "posixpath.": "os.path.",
    "pathlib2.": "pathlib.",
}
_SAME_WHOLE = {
    "io.open": "open",
    "_io.open": "open",
    "io.open_code": "open",
    "pathlib.PosixPath": "pathlib.Path",
    "pathlib.PurePath": "pathlib.Path",
    "pathlib.PurePosixPath": "pathlib.Path",
    "os.path.abspath": "os.path.realpath",
    "fileinput.FileInput": "fileinput.input",
    "itertools.chain.from_iterable": "itertools.chain",
}

#: Constants of modules.
CONSTANTS = {
    "os.sep": "/",
    "os.path.sep": "/",
    "os.curdir": ".",
    "os.pardir": "..",
    "os.devnull": "/dev/null",
    "os.extsep": ".",
    "os.linesep": "\n",
    "os.name": "posix",
    "string.ascii_lowercase": "abcdefghijklmnopqrstuvwxyz",
    "string.ascii_uppercase": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "string.digits": "0123456789",
    "sys.executable": "python3",
}

#: Functions that look at a function without calling it.
LOOKING = frozenset(
    ("print", "repr", "str", "type", "isinstance", "issubclass", "hasattr", "callable", "help", "id", "dir", "property")
)

#: Functions that run text as Python.
RUNNING = frozenset(("exec", "eval", "timeit.timeit", "timeit.repeat", "cProfile.run", "profile.run", "pdb.run"))

#: Functions with a method of their own in `python_special`.
SPECIAL = {
    "os.open": "open_flags",
    "os.getcwd": "folder_here",
    "pathlib.Path.cwd": "folder_here",
    "os.getenv": "environment",
    "os.environ.get": "environment",
    "print": "show",
    "input": "read_line",
    "sys.stdout.write": "write_out",
    "sys.stdout.buffer.write": "write_out",
    "sys.path.insert": "search_path",
    "sys.path.append": "search_path",
    "getattr": "get_attribute",
    "setattr": "set_attribute",
    "__import__": "import_name",
    "importlib.import_module": "import_name",
    "importlib.__import__": "import_name",
    "operator.attrgetter": "attribute_getter",
    "operator.methodcaller": "method_caller",
    "functools.partial": "partial",
    "map": "call_each",
    "filter": "filtered",
    "type": "make_class",
    "vars": "names_of",
    "globals": "names_here",
    "locals": "names_here",
    "compile": "compiled",
    "dict": "dictionary",
    "glob.glob": "globbed",
    "glob.iglob": "globbed",
    "shutil.copytree": "copy_tree",
    "shutil.unpack_archive": "unpack",
    "shutil.make_archive": "pack",
    "sqlite3.connect": "database",
    "fileinput.input": "input_files",
    "runpy.run_path": "run_file",
    "runpy.run_module": "run_module",
}


def canonical(name: str) -> str:
    """The one name by which our tables know a function."""
    for prefix, own in _SAME.items():
        if name.startswith(prefix):
            name = own + name[len(prefix) :]
    if name.startswith("ctypes.") and name.count(".") > 1 and f"os.{name.rpartition('.')[2]}" in known.FUNCTIONS:
        name = "os." + name.rpartition(".")[2]
    if name.startswith("ctypes.") and name.endswith(".system"):
        name = "os.system"
    name = _SAME_WHOLE.get(name, name)
    return name.replace("pathlib.PosixPath.", "pathlib.Path.")


def is_changing(name: str) -> bool:
    """Whether a function of that name is known to change something or to run something."""
    name = canonical(name)
    return (
        name in known.FUNCTIONS
        or name in known.INTO_FOLDERS
        or name in known.OPENERS
        or name in RUNNING
        or known.is_command(name)
        or name.startswith(("pathlib.Path", "fileinput.", "tempfile."))
        or name in ("os.open", "shutil.copytree", "shutil.unpack_archive", "shutil.make_archive", "sqlite3.connect")
    )
