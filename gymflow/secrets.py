"""Secrets are named in configurations, resolved as late as possible, and removed from whatever is stored or printed.

    api_key: ${env:OPENAI_API_KEY}      an environment variable
    api_key: ${file:/run/secrets/key}   the contents of a file, without the newline at its end
    api_key: ${prefect:model-key}       a Secret block of Prefect's (see tasks/secrets.py)

Configurations keep the reference; only the part that sends the secret calls `resolve`. A `Redactor` knows the values that
the references of a configuration resolve to, and those of environment variables whose names speak of secrets.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from pydantic import BaseModel

from gymflow.errors import InputError

MASK = "***"
MIN_LENGTH = 6
"""Shorter values are not searched for: replacing each `1` of a text because a password is `1` would help nobody."""

_REFERENCE = re.compile(r"\$\{([a-z_]+):([^}]+)\}")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LAST_WORDS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials", "authorization"}
    | {"cookie", "token", "apikey"}
)
_LAST_PAIRS = frozenset(
    [("api", "key"), ("private", "key"), ("secret", "key"), ("access", "key"), ("auth", "key"), ("signing", "key")]
)

_LAST_HEADER_WORDS = frozenset(
    {"key", "keys", "auth", "authentication", "pass", "jwt", "bearer", "session", "signature"}
)
_IDENTIFYING = frozenset({"id", "organization", "project", "account", "user", "traceparent", "agent", "version"})

# Each pattern stands behind a substring that it cannot match without: most texts hold none of them.
_SHAPES: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (needle, re.compile(pattern), replacement)
    for needle, pattern, replacement in (
        ("://", r"(?<=://)([^\s/?#:@'\"]*):[^\s/?#@'\"]+@", rf"\1:{MASK}@"),
        ("earer ", r"(?i)\b(bearer)\s+[\w.~+/=-]{8,}", rf"\1 {MASK}"),
        ("asic ", r"(?i)(authorization\W{1,4}basic)\s+[\w+/=-]{6,}", rf"\1 {MASK}"),
        ("-key", r"(?i)\b(x-(?:api|goog-api)-key|api-key)(['\"]?\s*[:=]\s*['\"]?)[\w.~+/=-]{6,}", rf"\1\2{MASK}"),
        ("key=", r"(?i)([?&](?:api_?key|key)=)[^&\s'\"]+", rf"\1{MASK}"),
        ("token=", r"(?i)([?&](?:access_)?token=)[^&\s'\"]+", rf"\1{MASK}"),
        ("sk-", r"(?<![\w-])sk-[A-Za-z0-9_-]{16,}", MASK),
        ("hf_", r"(?<!\w)hf_[A-Za-z0-9]{20,}", MASK),
        ("nvapi-", r"(?<!\w)nvapi-[A-Za-z0-9_-]{16,}", MASK),
        ("gh", r"(?<!\w)gh[pousr]_[A-Za-z0-9]{30,}", MASK),
        ("github_pat_", r"(?<!\w)github_pat_\w{30,}", MASK),
        ("glpat-", r"(?<!\w)glpat-[\w-]{16,}", MASK),
        ("xox", r"(?<!\w)xox[abprs]-[A-Za-z0-9-]{10,}", MASK),
        ("AKIA", r"(?<!\w)AKIA[0-9A-Z]{16}(?!\w)", MASK),
        ("AIza", r"(?<!\w)AIza[\w-]{35}", MASK),
        ("eyJ", r"(?<!\w)eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}", MASK),
    )
)


def _from_environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise InputError(f"the environment variable {name} is not set")
    return value


def _from_file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise InputError(f"the secret's file {path} cannot be read: {error.strerror}") from error


RESOLVERS: dict[str, Callable[[str], str]] = {"env": _from_environment, "file": _from_file}
"""Scheme -> what turns a reference's name into the secret; raises InputError. A layer above may add its own."""


def resolve(text: str, field: str) -> str:
    """`text` with its references replaced by what they stand for. `field` is named when one cannot be resolved."""

    def replace(match: re.Match[str]) -> str:
        scheme, name = match.groups()
        if scheme not in RESOLVERS:
            known = ", ".join(f"${{{known}:…}}" for known in sorted(RESOLVERS))
            raise InputError(f"{field}: {match.group()} is not a kind of secret; there are {known}")
        try:
            return RESOLVERS[scheme](name)
        except InputError as error:
            raise InputError(f"{field} ({match.group()}): {error}") from error

    return _REFERENCE.sub(replace, text)


def resolve_key(reference: str, field: str) -> str:
    """A secret that must be named by a reference, so that no configuration that is stored or sent ever holds it."""
    if not _REFERENCE.fullmatch(reference):
        raise InputError(
            f"{field}: a key is never written into a configuration; export it and refer to it, such as ${{env:MODEL_KEY}}"
        )
    return resolve(reference, field)


def resolved_elsewhere(config: Any) -> dict[str, str]:
    """What references other than to variables and files stand for, by `scheme:name`: another process cannot resolve them."""
    found = {}
    for text in _strings(_plain(config)):
        for scheme, name in _REFERENCE.findall(text):
            if scheme not in ("env", "file"):
                found[f"{scheme}:{name}"] = resolve(f"${{{scheme}:{name}}}", name)
    return found


def is_secret_name(name: str) -> bool:
    """Whether a field, header or variable of this name holds a secret: `db_password`, `X-Api-Key`, `hfToken`; not
    `max_tokens`, `tokenizer` or `max_output_tokens`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and (
        words[-1] in _LAST_WORDS or tuple(words[-2:]) in _LAST_PAIRS or words[-3:] == ["access", "key", "id"]
    )


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header holds a secret: by its name, of which there are as many as gateways (`Ocp-Apim-Subscription-Key`, `X-Auth`),
    or because its value is as random as only keys are, unless the name says that it identifies something."""
    last = ([word.lower() for word in _WORDS.findall(name)] or [""])[-1]
    random = any(_random(part) for part in re.split(r"[^0-9A-Za-z]+", value)) and last not in _IDENTIFYING
    return is_secret_name(name) or last in _LAST_HEADER_WORDS or random


def mask(config: Any) -> Any:
    """A configuration as JSON-like data, fit to print or store: references stay, secrets written out do not."""
    return Redactor().config(_plain(config))


def written_out(config: Any) -> list[str]:
    """Where a configuration holds secrets themselves instead of references, as paths such as `models.policy.base_url`."""
    plain = _plain(config)
    return [".".join(path) for path in _differing(plain, mask(plain), ())]


def _differing(one: Any, other: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(one, Mapping):
        for key, value in one.items():
            yield from _differing(value, other[key], (*path, str(key)))
    elif isinstance(one, list):
        for index, value in enumerate(one):
            yield from _differing(value, other[index], (*path, str(index)))
    elif one != other:
        yield path


class Redactor:
    """Removes known secret values, and what looks like a secret, from text and JSON."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = {value for value in values if len(value) >= MIN_LENGTH}
        known |= {quote(value, safe="") for value in known}
        self._values = sorted(known, key=lambda value: (-len(value), value))
        self._bytes = [value.encode() for value in self._values if _encodable(value)]
        self._encoded = [orjson.dumps(value)[1:-1] for value in self._values if _encodable(value)]

    @classmethod
    def of(cls, *configs: Any, environ: Mapping[str, str] | None = None) -> "Redactor":
        """Knows what the references in these configurations resolve to now, and the values of environment variables whose
        names speak of secrets, unless the value is a word that texts hold anyway (`POSTGRES_PASSWORD=postgres`)."""
        environment = os.environ if environ is None else environ
        values = [value for name, value in environment.items() if is_secret_name(name) and _telling(value)]
        for config in configs:
            for text in _strings(_plain(config)):
                for reference in _REFERENCE.finditer(text):
                    try:
                        values.append(resolve(reference.group(), ""))
                    except InputError:
                        continue  # whoever needs it says so
        return cls(values)

    def text(self, text: str) -> str:
        """For messages and logs: known values, credentials in URLs, authorization headers, strings shaped like keys."""
        text = self.values(text)
        for needle, pattern, replacement in _SHAPES:
            if needle in text:
                text = pattern.sub(lambda found: _masked(found, replacement), text)  # noqa: B023
        return text

    def values(self, text: str) -> str:
        """Known values only: for evidence, whose other text must stay as the model or a tool wrote it."""
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return text

    def json(self, value: Any) -> Any:
        """Every string of a JSON value through `values`, keys included; the value itself if there was nothing to remove."""
        if not self._values:
            return value
        try:
            if not self.found_in(orjson.dumps(value)):
                return value
        except TypeError:
            pass  # a lone surrogate or a large integer; the slow way copes with them
        return _cleaned(value, self.values)

    def data(self, content: bytes) -> bytes:
        """Known values in bytes of any kind, masked at their own length, so that what holds them keeps its layout."""
        for value in self._bytes:
            if value in content:
                content = content.replace(value, b"*" * len(value))
        return content

    def found_in(self, data: bytes) -> bool:
        """Whether JSON bytes hold a known value; microseconds for a few kilobytes."""
        return any(value in data for value in self._encoded)

    def config(self, value: Any) -> Any:
        """For configurations and headers: strings under secret names are masked, the others go through `text`."""
        return _rebuilt(value, self._config_string)

    def _config_string(self, within: str | None, name: str | None, text: str) -> str:
        is_header = within is not None and within.lower().endswith("headers")
        if name is not None and text and (is_secret_header(name, text) if is_header else is_secret_name(name)):
            return text if _REFERENCE.search(text) else MASK
        return self.text(text)


def _masked(found: re.Match[str], replacement: str) -> str:
    """What is shaped like a secret, masked; a reference is none."""
    return found.group() if _REFERENCE.search(found.group()) else found.expand(replacement)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _telling(value: str) -> bool:
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= (10 if mixed else 16)


def _random(word: str) -> bool:
    """Long, and letters among digits: no word, no version and no date."""
    return len(word) >= 16 and any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def _plain(config: Any) -> Any:
    return config.model_dump(mode="json") if isinstance(config, BaseModel) else config


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from _strings(element)
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _strings(element)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(key) if isinstance(key, str) else key: _cleaned(one, clean) for key, one in value.items()}
    return [_cleaned(one, clean) for one in value] if isinstance(value, list | tuple) else value


def _rebuilt(
    value: Any,
    change: Callable[[str | None, str | None, str], str],
    within: str | None = None,
    name: str | None = None,
) -> Any:
    """`change` is told the names of the mapping that holds a string, and of the string."""
    if isinstance(value, str):
        return change(within, name, value)
    if isinstance(value, Mapping):
        return {
            key: _rebuilt(element, change, name, key if isinstance(key, str) else None)
            for key, element in value.items()
        }
    if isinstance(value, list | tuple):
        return [_rebuilt(element, change, within, name) for element in value]
    return value
