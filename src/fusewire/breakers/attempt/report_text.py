"""The attempt seed's texts: the tracking state, the diagnostic report, and what a fresh implementer is told."""

from __future__ import annotations

from typing import Any

#: What stands for a field that nobody has filled.
UNREPORTED = "not reported"


def yaml_text(data: object) -> str:
    """YAML as people write it: texts of several lines as blocks, keys in their order."""
    import yaml

    from fusewire.util.text import visible

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        quoted = None if visible(value) == value else '"'  # what is written for it may look like a list
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else quoted)

    Dumper.add_representer(str, text)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000, indent=2)


def prior_attempts(prior: list[dict[str, Any]]) -> str:
    """The `<prior_attempts>` block after a retry; empty if there was none."""
    if not prior:
        return ""
    newest = prior[-1]
    lines = ["<prior_attempts>", f"Circuit tripped after {newest['failures']} total failed attempts."]
    if newest["arch_stop"]:
        lines.append(f"ARCH-STOP: {_inside(newest['arch_stop'])}")
    for name, test in newest["tests"].items():
        report = test["report"]
        earlier = [entry for one in prior[:-1] for entry in one["tests"].get(name, {}).get("log", ())]
        tried = _tried(test["log"]) + (f"; and before an earlier retry: {_tried(earlier)}" if earlier else "")
        lines += [
            "",
            f'For test "{_inside(name)}":',
            f"- what was tried: {_inside(tried)}",
            f"- hypothesis: {_inside(report.get('best_hypothesis', UNREPORTED))}",
            f"- question: {_inside(report.get('specific_question', UNREPORTED))}",
            f"- guidance: {_inside(newest['guidance'] or 'none given')}",
        ]
    if not newest["tests"] and newest["guidance"]:
        lines += ["", f"- guidance: {_inside(newest['guidance'])}"]
    return "\n".join([*lines, "</prior_attempts>"])


def _tried(log: list[dict[str, Any]]) -> str:
    """`1. strategy -> result; 2. …`."""
    steps = []
    for entry in log:
        result = f" -> {entry['result']}" if entry["result"] else ""
        steps.append(f"{entry['attempt']}. {entry['strategy'] or 'strategy not described'}{result}")
    return "; ".join(steps)


def _inside(text: str) -> str:
    """On one line, without characters that nobody sees, and unable to end the block that it stands in."""
    import re
    import unicodedata

    seen = "".join(letter if unicodedata.category(letter) not in ("Cc", "Cf", "Cs") else " " for letter in text)
    return re.sub(r"<(?=\s*/?\s*prior_attempts)", "&lt;", " ".join(seen.split()), flags=re.IGNORECASE)
