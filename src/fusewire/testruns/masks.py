"""Mask what varies between two prints of one error, such as lines, paths, times, ids, so that they are one text."""

from __future__ import annotations

import re

from fusewire.testruns.text import plain_text

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_PART = r"[^\s/\\:'\"`()<>,;|]+"

#: In this order: a longer thing is masked before the number inside it.
_MASKS = [
    (re.compile(pattern), mask)
    for pattern, mask in (
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b(?:req|msg|toolu|call|resp|chatcmpl|run|sess)_[A-Za-z0-9_]{8,}\b", "<id>"),
        (rf"\b\d{{4}}[-/]\d{{2}}[-/]\d{{2}}(?:[T ]{_CLOCK}(?: ?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?)?", "<time>"),
        (rf"\b\d{{1,2}}[/ -]{_MONTH}[/ -]\d{{4}}(?:[: ]{_CLOCK})?(?: [+-]\d{{4}})?", "<time>"),
        (rf"\b{_MONTH}\.? \d{{1,2}}(?:, \d{{4}})?(?:,? (?:at )?{_CLOCK}(?: ?[ap]m)?)?(?: \d{{4}})?\b", "<time>"),
        (r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|\b)", "<time>"),
        (r"\b\d{1,2}:\d{2} ?[apAP][mM]\b", "<time>"),
        (r"\b0[xX][0-9a-fA-F]+\b", "<hex>"),
        (r"(?<![\w.])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}(?![\w])", "<hex>"),
        (r"(?<=[\w\])]):\d{2,5}(?=/)", ":<n>"),
        (r"\b(localhost|(?:\d{1,3}\.){3}\d{1,3}|\[::1?\]):\d{2,5}\b", r"\1:<n>"),
        (r"(?i)\b(port)([ =:#]+)\d{2,5}\b", r"\1\2<n>"),
        (
            r"(?:/private)?(?:/var/folders/[^/\s]+/[^/\s]+|/var/tmp|/tmp)/(?:tmp|cc|rust|go-build|ld-)[\w.-]{4,}\b",
            "<temp>",
        ),
        (rf"(?:file://)?(?<![\w./~<>-])~?(?:/{_PART})*/({_PART})", r"<path>/\1"),
        (rf"<temp>(?:/{_PART})*/({_PART})", r"<path>/\1"),
        (rf"\b[A-Za-z]:\\(?:{_PART}\\)*({_PART})", r"<path>/\1"),
        (
            r"(?i)\b(lines?|columns?|col|char(?:acter)?|position|offset|byte|row)([ =:#]+)\d+(?:(?:-|, | to )\d+)?\b",
            r"\1\2<n>",
        ),
        (r"(\.\w+|<\w+>|\[eval\]|\[stdin\]):\d+(?::\d+)?\b", r"\1"),
        (r"(\.\w+)\(\d+(?:,\d+)?\)", r"\1"),
        (r"(?i)\b(pid|process|thread|task|worker|job|tid|attempt)([ =:#]+)\d+\b", r"\1\2<n>"),
        (r"(?<=[\w'\"])( ?)[\[(]\d{3,}[\])]", r"\1(<n>)"),
        (r"\b(?:\d+(?:\.\d+)? ?(?:hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|ms|µs|us|ns)\b ?)+", "<duration> "),
        (r"\b\d+m\d+(?:\.\d+)?s\b", "<duration>"),
        (r"(['\"`])[-+]?\d+(?:\.\d+)?\1", r"\1<n>\1"),
        (r"\b\d{9,}(?:\.\d+)?\b", "<n>"),
    )
]

_NUMBER = re.compile(r"\d+")


def normalised(message: str) -> str:
    """The message with everything masked that may differ though the error is the same."""
    text = plain_text(message)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return " ".join(text.split())


def without_numbers(text: str) -> str:
    """With every number masked as well."""
    return _NUMBER.sub("<n>", normalised(text))
