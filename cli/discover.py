"""`gym list` and `gym search`: what there is to run, and what fits together."""

import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import Json, SearchDir
from cli.terminal import print_json
from gymflow.errors import InputError
from gymflow.suggest import did_you_mean, relevance

if TYPE_CHECKING:
    from gymflow.registry import Registry, Summary

KINDS = ("environments", "benchmarks", "harnesses", "verifiers", "models", "sandboxes")
COLUMNS: dict[str, tuple[str, ...]] = {
    "environments": ("domain", "offers", "verifier"),
    "benchmarks": ("environment", "split", "repeats"),
    "harnesses": ("needs", "licence", "external_licence", "installed"),
    "verifiers": ("needs", "rerun"),
    "models": (),
    "sandboxes": (),
}

app = typer.Typer(no_args_is_help=True)

Domain = Annotated[str | None, typer.Option(help="Only this domain.")]
Tag = Annotated[list[str] | None, typer.Option(help="Only with this tag (repeatable: with all of them).")]
Licence = Annotated[str | None, typer.Option(help="Only under this licence, ours or that of an external tool.")]


@app.command("list")
def list_components(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS))],
    name: Annotated[str | None, typer.Argument(help="Show this one in detail.")] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="ENV", help="harnesses: which can play this environment, and why not."),
    ] = None,
    domain: Domain = None,
    tag: Tag = None,
    licence: Licence = None,
    search_dir: SearchDir = None,
    json: Json = False,
) -> None:
    """List environments, benchmarks, harnesses, verifiers, models or sandboxes; with NAME, one of them in detail."""
    from gymflow.registry import Registry

    kind = _kind(kind)
    registry = Registry(search_dir or ())
    listed = _summaries(registry, kind)
    if for_ is not None:
        if kind != "harnesses":
            raise InputError("--for goes with `gym list harnesses`")
        listed = _fitted(registry, listed, for_)
    if name is not None:
        _show(_named(listed, kind, name), json)
        return
    _print(kind, _filtered(listed, domain, tag or [], licence), json, fit=for_ is not None)


@app.command("search")
def search(
    words: Annotated[list[str], typer.Argument(metavar="[KIND] QUERY", help=f"KIND: {', '.join(KINDS)}.")],
    domain: Domain = None,
    tag: Tag = None,
    licence: Licence = None,
    search_dir: SearchDir = None,
    json: Json = False,
) -> None:
    """Find components by name, description, domain and tags: by substring, else by similarity."""
    from gymflow.registry import Registry

    kinds = list(KINDS)
    if len(words) > 1 and (named := _plural(words[0])):
        kinds, words = [named], words[1:]
    query = " ".join(words)
    registry = Registry(search_dir or ())
    everything = [summary for kind in kinds for summary in _summaries(registry, kind)]
    scored = [(relevance(query, _texts(one)), one) for one in _filtered(everything, domain, tag or [], licence)]
    best = max((score for score, _ in scored), default=0.0)
    found = [pair for pair in scored if pair[0] > 0 and (best < 100 or pair[0] == 100)]
    found.sort(key=lambda pair: (-pair[0], query.lower() not in pair[1].name, pair[1].kind, pair[1].name))
    if not found:
        _say(f"nothing matches {query!r}; {did_you_mean(query, [one.name for one in everything])}")
    _print(None, [one for _, one in found], json)


def _plural(text: str) -> str | None:
    return next((kind for kind in KINDS if text in (kind, kind.removesuffix("s"), kind.removesuffix("es"))), None)


def _kind(text: str) -> str:
    plural = _plural(text)
    if plural is None:
        raise InputError(f"there is no kind {text!r}; {did_you_mean(text, KINDS)}")
    return plural


def _summaries(registry: "Registry", kind: str) -> list["Summary"]:
    listed: list[Summary] = getattr(registry, kind)()
    return listed


def _named(listed: list["Summary"], kind: str, name: str) -> "Summary":
    matches = [one for one in listed if name in (one.name, f"{one.root}:{one.name}")]
    if not matches:
        ambiguous = [one for one in listed if one.name.endswith(f":{name}")]
        if ambiguous:
            places = "\n".join(f"  {one.name}  {one.place}" for one in ambiguous)
            raise InputError(f"several roots have {name!r}; choose one by its full name:\n{places}")
        raise InputError(f"there is no {name!r} among the {kind}; {did_you_mean(name, [one.name for one in listed])}")
    return matches[0]


def _fitted(registry: "Registry", listed: list["Summary"], environment: str) -> list["Summary"]:
    """The harnesses with whether they can play an environment; those that can come first."""
    from gymflow.validation import unfit

    manifest = registry.environment(environment).manifest
    fitted = []
    for one in listed:
        reason = one.broken or unfit(registry.harness_class(one.name), manifest)
        fitted.append(replace(one, details={**one.details, "fits": reason is None, "reason": reason}))
    return sorted(fitted, key=lambda one: not one.details["fits"])


def _filtered(listed: list["Summary"], domain: str | None, tags: list[str], licence: str | None) -> list["Summary"]:
    """Those that match; how many could not be judged because they do not say goes to stderr."""
    kept = listed
    if domain is not None:
        kept = _matching(kept, "domain", lambda one: [one.domain], [domain])
    if tags:
        kept = _matching(kept, "tags", lambda one: one.tags, tags)
    if licence is not None:
        kept = _matching(kept, "licence", lambda one: [one.licence, one.external_licence], [licence])
    return kept


def _matching(listed: list["Summary"], field: str, values: Any, wanted: list[str]) -> list["Summary"]:
    silent = sum(1 for one in listed if not any(values(one)))
    if silent:
        _say(f"{silent} left out that have no {field}")
    lowered = {one.lower() for one in wanted}
    return [one for one in listed if lowered <= {value.lower() for value in values(one) if value}]


def _texts(one: "Summary") -> list[str]:
    return [one.name, one.description, one.domain or "", *one.tags]


def _print(kind: str | None, listed: list["Summary"], json: bool, *, fit: bool = False) -> None:
    from cli.tables import print_table

    if json:
        print_json([asdict(one) for one in listed])
        return
    columns = ["name", *(["kind"] if kind is None else COLUMNS[kind]), *(["plays it"] if fit else []), "description"]
    print_table(columns, [[_cell(one, column) for column in columns] for one in listed])


def _cell(one: "Summary", column: str) -> str:
    if column == "description":
        return f"broken: {one.broken}" if one.broken else one.description
    if column == "plays it":
        return "yes" if one.details["fits"] else f"no: {one.details['reason']}"
    value = getattr(one, column) if hasattr(one, column) else one.details.get(column)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else "" if value is None else str(value)


def _show(one: "Summary", json: bool) -> None:
    from cli.tables import print_table

    fields = asdict(one)
    if json:
        print_json(fields | {"usage": _usage(one)})
        return
    rows = []
    for name, value in {**fields, **fields.pop("details"), "usage": _usage(one)}.items():
        if name != "details" and value not in (None, [], {}, ""):
            rows.append([name, _plain(value)])
    print_table(["field", "value"], rows)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _usage(one: "Summary") -> str | None:
    return {
        "environment": f"gym eval run {one.name}",
        "benchmark": f"gym eval run {one.details.get('environment')} --benchmark {one.name}",
        "harness": f"gym eval run ENV --harness {one.name}",
        "verifier": f"verifier: {{name: {one.name}}}",
        "model": f"gym eval run ENV --model {one.name}:NAME",
        "sandbox": f"gym sandbox check {one.name}",
    }[one.kind]


def _say(message: str) -> None:
    print(f"gym: {message}", file=sys.stderr)
