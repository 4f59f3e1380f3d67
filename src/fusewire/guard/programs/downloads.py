"""curl and wget: where what they fetch is put."""

from __future__ import annotations

from fusewire.guard.programs.places import last, under
from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program


_CURL_LONGS = (
    "output= output-dir= dump-header= cookie-jar= trace= trace-ascii= stderr= etag-save= etag-compare= remote-name"
    " remote-name-all remote-header-name config= upload-file= write-out= hsts= alt-svc= libcurl= url= data= data-raw="
    " data-ascii= data-binary= data-urlencode= header= request= user= user-agent= max-time= connect-timeout= retry="
    " retry-delay= retry-max-time= cookie= form= form-string= proxy= proxy-user= cacert= capath= cert= cert-type= key="
    " key-type= pass= ciphers= referer= range= interface= resolve= connect-to= limit-rate= create-file-mode="
    " max-redirs="
    " max-filesize= json= variable= continue-at= time-cond= proto= proto-default= proto-redir= speed-limit= speed-time="
    " keepalive-time= local-port= mail-from= mail-rcpt= netrc-file= noproxy= oauth2-bearer= parallel-max= pinnedpubkey="
    " quote= rate= socks5= socks5-hostname= tls-max= unix-socket= url-query= expand-output= aws-sigv4="
    " dns-servers= doh-url="
    " location silent show-error fail fail-with-body insecure compressed create-dirs head get globoff verbose include"
    " no-progress-meter progress-bar http1.1 http2 ipv4 ipv6 next parallel netrc anyauth basic digest remote-time"
)


#: Its options that name a file to be written.
_CURL_FILES = ("D", "dump-header", "c", "cookie-jar", "trace", "trace-ascii", "stderr", "etag-save", "libcurl", "hsts")


def _curl(call: Call) -> None:
    found = told_apart(_with_configs(call), "AbcCdDeEFhHKmoPQrtTuUwxXyYz", _CURL_LONGS, optional="h")
    values = dict(found)
    if values.keys() & {"h", "help", "V", "version", "M", "manual"}:
        return
    for name, value in found:
        if name in _CURL_FILES:
            _downloaded(call, value)
        if name in ("w", "write-out") and "%output{" in value:
            _downloaded(call, value.partition("%output{")[2].partition("}")[0].removeprefix(">>"))
    urls = [value for name, value in found if name in ("", "url")]
    folder = values.get("output-dir", "")
    outputs: list[str] = []
    for name, value in found:
        if name in ("o", "output"):
            outputs.append(value if "#" not in value else value.partition("#")[0] + UNKNOWN)
        elif name in ("O", "remote-name"):
            outputs.append("")
    if values.keys() & {"T", "upload-file"}:
        for url in urls:
            call.write(_local(url))
        return
    everything = "remote-name-all" in values
    for at, url in enumerate(urls):
        if at < len(outputs) or everything:
            name = outputs[at] if at < len(outputs) else ""
            headers = values.keys() & {"J", "remote-header-name"}
            name = name or (UNKNOWN if headers or UNKNOWN in url else last(url.partition("?")[0].partition("#")[0]))
            _downloaded(call, under(folder, name) if name != "-" else name)
        else:
            text = call.walk.read_file(_local(url)) if _local(url) else None
            call.print(UNKNOWN if text is None else text)


def _downloaded(call: Call, name: str) -> None:
    if name not in ("-", "") and not name.startswith("/dev/") and name[:1] != "%":
        call.write(name)
        call.walk.files[call.path(name)] = UNKNOWN


def _local(url: str) -> str:
    """The path of a `file://` address."""
    return "/" + url.partition("//")[2].partition("/")[2] if url[:5].lower() == "file:" else ""


def _with_configs(call: Call) -> list[str]:
    """The words, with the options of `-K FILE` behind them."""
    words = list(call.args)
    for at, word in enumerate(call.args[:-1]):
        if word in ("-K", "--config"):
            name = call.args[at + 1]
            text = call.world.stdin if name == "-" else call.walk.read_file(call.path(name))
            for line in (text or "").splitlines():
                line = line.strip()
                if line and line[0] != "#":
                    key, _, value = line.replace("=", " ", 1).replace(":", " ", line.count(": ") > 0).partition(" ")
                    words.append(key if key[:1] == "-" else f"--{key}")
                    words += [value.strip().strip("\"'")] if value.strip() else []
    return words


_WGET_LONGS = (
    "output-document= output-file= append-output= directory-prefix= input-file= save-cookies= load-cookies= spider"
    " no-clobber timestamping continue recursive mirror page-requisites force-directories no-directories"
    " content-disposition background quiet execute= tries= timeout= wait= waitretry= limit-rate= quota= user= password="
    " user-agent= header= referer= post-data= post-file= body-data= body-file= method= level= accept= reject= domains="
    " exclude-domains= include-directories= exclude-directories= base= cut-dirs= default-page= warc-file= rejected-log="
    " ca-certificate= certificate= private-key= use-askpass= config= no-check-certificate show-progress progress="
    " read-timeout= connect-timeout= dns-timeout= secure-protocol= max-redirect= trust-server-names help version"
    " hsts-file="
)


def _wget(call: Call) -> None:
    found = told_apart(call.args, "oaeiBtOTwQPUlARDIX", _WGET_LONGS)
    values = dict(found)
    flags = values.keys()
    if flags & {"h", "help", "V", "version"}:
        return
    for name in ("o", "output-file", "a", "append-output", "save-cookies", "rejected-log", "warc-file"):
        if values.get(name):
            _downloaded(call, values[name])
    if flags & {"use-askpass"}:
        call.script(values["use-askpass"])
    if "spider" in flags:
        return
    target = values.get("O", values.get("output-document"))
    for command in (value for name, value in found if name in ("e", "execute")):
        key, _, value = command.partition("=")
        if key.strip().replace("-", "_").lower() in ("output_document", "outputdocument"):
            target = value.strip()
    if target is not None:
        _downloaded(call, target)
        if target == "-":
            call.print(UNKNOWN)
        return
    folder = values.get("P", values.get("directory-prefix", ""))
    urls = [value for name, value in found if not name]
    if "i" in flags or "input-file" in flags:
        urls.append(UNKNOWN)
    whole = flags & set("rmpx") or flags & {"recursive", "mirror", "page-requisites", "content-disposition"}
    for url in urls:
        rest = url.partition("://")[2] or url
        name = UNKNOWN if whole or UNKNOWN in url else last(rest) if "/" in rest.rstrip("/") else "index.html"
        name = under(folder or ("." if name == UNKNOWN else ""), name)
        there = call.disk.exists(call.path(name))
        if there and ("nc" in call.args or "-nc" in call.args or "no-clobber" in flags):
            continue
        if there and not flags & {"N", "c", "timestamping", "continue"}:
            name += ".1"
        _downloaded(call, name)


PROGRAMS: dict[str, Program] = {"curl": _curl, "wget": _wget}
