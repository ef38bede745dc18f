"""The testing process: runs the tests on values that it asks the process under test for, over GYMFLOW_CHANNEL.

Verdicts go to standard output, a line of JSON each; the process under test cannot reach it. What comes from there is plain values,
which are compared here, and objects of the solution's own classes. Such an object has attributes, methods, a length and items; it
equals itself and no plain value, and what it contains is looked for here, among its items. It is not asked for a comparison or for
arithmetic, since whoever is told the expected value can answer as if it had known: `abs(f(2) - 7.25) < 1e-6` is no test if `f(2)`
computes the difference. Tests of a class whose operators are the point say so (`own_operators`); then two objects of one class are
equal when they hold equal values, and arithmetic with a value of the tests must give an object again.
"""

# Runs in the sandbox, by whichever Python that has.
# ruff: noqa: B905, PTH100, PTH112, PTH120, PTH123
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

import builtins
import json
import math
import os
import signal
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _python_wire as wire

sys.path.pop(0)
sys.path += [p for p in (f"{r}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages" for r in ("/opt/venv", sys.prefix)) if os.path.isdir(p)][:1]  # fmt: skip

ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
PLAIN = (
    "__len__",
    "__getitem__",
    "__setitem__",
    "__delitem__",
    "__int__",
    "__float__",
    "__index__",
    "__enter__",
    "__exit__",
)
ARITHMETIC = (
    "__add__", "__sub__", "__mul__", "__matmul__", "__truediv__", "__floordiv__", "__mod__", "__divmod__", "__pow__", "__lshift__",
    "__rshift__", "__and__", "__or__", "__xor__", "__neg__", "__pos__", "__abs__", "__invert__", "__round__", "__radd__", "__rsub__",
    "__rmul__", "__rtruediv__",
)  # fmt: skip


class TimeLimit(BaseException):
    """The time for all tests is over."""


class Client:
    """Asks the process under test. `own_operators`: whether objects there may answer comparisons and arithmetic."""

    def __init__(self, channel, own_operators=False):
        self.own_operators = own_operators
        self.input = os.fdopen(channel, "rb", closefd=False)
        self.output = os.fdopen(channel, "wb", closefd=False)
        self.callbacks = []
        self.classes = {}

    def ask(self, op, mutable=(), **request):
        wire.send(self.output, {"op": op, **request})
        while True:
            reply = wire.receive(self.input)
            if "call" not in reply:
                break
            wire.send(self.output, self.call_back(reply))
        if "error" in reply:
            raise self.exception(reply["error"])
        for ours, theirs in zip(mutable, reply.get("args") or ()):
            if theirs is not None:
                wire.renew(ours, self.value(theirs))
        return self.value(reply.get("value"))

    def call_back(self, reply):
        try:
            arguments = [self.value(one) for one in reply["args"]]
            keywords = {name: self.value(one) for name, one in reply["kwargs"].items()}
            return {"op": "answer", "value": self.plain(self.callbacks[reply["call"]](*arguments, **keywords))}
        except Exception as error:
            return {"op": "answer", "error": type(error).__name__, "text": str(error)}

    def call(self, number, args, kwargs):
        sent = [self.plain(one) for one in args]
        return self.ask(
            "call", mutable=args, id=number, args=sent, kwargs={k: self.plain(v) for k, v in kwargs.items()}
        )

    def plain(self, value):
        return wire.encode(value, self.other)

    def other(self, value):
        if isinstance(value, Remote):
            return {"t": "ref", "id": object.__getattribute__(value, "_number")}
        if isinstance(value, type) and getattr(value, "_remote", None) is not None:
            return {"t": "ref", "id": value._remote}
        if callable(value):
            self.callbacks.append(value)
            return {"t": "callback", "id": len(self.callbacks) - 1}
        if hasattr(value, "__next__"):
            return wire.encode(list(value), self.other)
        raise wire.NotPlain(f"a test cannot hand a {type(value).__name__} to the solution")

    def value(self, message):
        return wire.decode(message, self.remote)

    def remote(self, message):
        if message.get("t") == "exception":
            return self.exception_class(message)
        return Remote(self, int(message["id"]), str(message.get("class")), message.get("name"))

    def exception_class(self, message):
        number = int(message["id"])
        if number not in self.classes:
            known = [
                getattr(builtins, name)
                for name in message.get("bases", ())
                if isinstance(getattr(builtins, name, None), type)
            ]
            base = next((one for one in known if issubclass(one, Exception)), Exception)
            if message.get("name") == base.__name__:
                self.classes[number] = base
            else:
                self.classes[number] = type(str(message.get("name")), (base,), {"_remote": number})
        return self.classes[number]

    def exception(self, error):
        cls = self.exception_class({**error["class"], "bases": error["bases"]})
        arguments = [self.value(one) for one in error["args"]] or [error["text"]]
        try:
            return cls(*arguments)
        except Exception:
            return Exception(f"{error['type']}: {error['text']}")


class Remote:
    """Something in the process under test that is not a plain value."""

    def __init__(self, client, number, kind, name):
        for attribute, value in (("_client", client), ("_number", number), ("_kind", kind), ("__name__", name or kind)):
            object.__setattr__(self, attribute, value)

    def __call__(self, *args, **kwargs):
        return self._client.call(self._number, args, kwargs)

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__") and name not in ("__doc__", "__dict__", "__name__"):
            raise AttributeError(name)
        return self._client.ask("getattr", id=self._number, name=name)

    def __setattr__(self, name, value):
        self._client.ask("setattr", id=self._number, name=name, args=[self._client.plain(value)])

    def __delattr__(self, name):
        self._client.ask("delattr", id=self._number, name=name)

    def __eq__(self, other):
        if not isinstance(other, Remote):
            return False
        if self._number == other._number:
            return True
        self._allowed("compared")
        state = [self._client.ask("state", id=one._number) for one in (self, other)]
        return state[0] == state[1]

    def __ne__(self, other):
        return not self == other

    def _allowed(self, what):
        if not self._client.own_operators:
            raise TypeError(
                f"a {self._kind} of the solution is {what}: compare its attributes, or set `own_operators` where tests are about them"
            )

    def __contains__(self, item):
        if isinstance(item, Remote) and self._client.own_operators:
            return (
                self._client.ask("special", id=self._number, name="__contains__", args=[self._client.plain(item)])
                is True
            )
        return any(one is item or one == item for one in self)

    def __hash__(self):
        return hash(self._number)

    def __bool__(self):
        return self._client.ask("bool", id=self._number) is True

    def __iter__(self):
        iterator = self._client.ask("iter", id=self._number)
        if not isinstance(iterator, Remote):
            yield from iterator
            return
        while found := self._client.ask("next", id=iterator._number):
            yield found[0]

    def __next__(self):
        found = self._client.ask("next", id=self._number)
        if not found:
            raise StopIteration
        return found[0]

    def __str__(self):
        return self._client.ask("text", id=self._number, name="str")

    def __repr__(self):
        return self._client.ask("text", id=self._number, name="repr")

    def __instancecheck__(self, instance):
        if not isinstance(instance, Remote):
            return False
        return self._client.ask("isinstance", id=self._number, args=[self._client.plain(instance)]) is True


def _special(name):
    def method(self, *args):
        return self._client.ask("special", id=self._number, name=name, args=[self._client.plain(one) for one in args])

    return method


def _arithmetic(name):
    def method(self, *args):
        self._allowed("calculated with")
        sent = [self._client.plain(one) for one in args]
        result = self._client.ask("special", id=self._number, name=name, args=sent)
        if any(not isinstance(one, Remote) for one in args) and not isinstance(result, Remote):
            raise TypeError(f"{name} of a {self._kind} of the solution and a value of the tests gives no object")
        return result

    return method


def _ordered(name):
    def method(self, other):
        if not isinstance(other, Remote):
            return NotImplemented
        self._allowed("compared")
        return self._client.ask("special", id=self._number, name=name, args=[self._client.plain(other)]) is True

    return method


for _name in PLAIN:
    setattr(Remote, _name, _special(_name))
for _name in ARITHMETIC:
    setattr(Remote, _name, _arithmetic(_name))
for _name in ORDER:
    setattr(Remote, _name, _ordered(_name))


def same(result, expected, tolerance):
    """Equality for cases that are data: a tuple equals the list that JSON has for it."""
    if isinstance(result, bool) or isinstance(expected, bool):
        return result is expected
    if isinstance(expected, (int, float)) and isinstance(result, (int, float)):
        return result == expected or close(result, expected, tolerance)
    if isinstance(expected, list) and isinstance(result, (list, tuple)):
        return len(result) == len(expected) and all(same(r, e, tolerance) for r, e in zip(result, expected))
    if isinstance(expected, dict) and isinstance(result, dict):
        return result.keys() == expected.keys() and all(same(result[k], expected[k], tolerance) for k in expected)
    return type(result) is type(expected) and result == expected


def close(result, expected, tolerance):
    """Whole numbers are equal or not; what stands for one must come to lie nearest to it."""
    if not math.isfinite(result) or not math.isfinite(expected):
        return False
    if isinstance(expected, int) and (isinstance(result, int) or round(result) != expected):
        return False
    return abs(result - expected) <= tolerance * max(1.0, abs(expected))


def tests_of(job, given):
    """(name, function) of each test."""
    found = []
    for number, source in enumerate(job["tests"]):
        found.append((f"test {number + 1}", lambda number=number, source=source: run_test(job, given, number, source)))
    candidate = given.get(job["entry_point"])
    for number, case in enumerate(job["cases"]):
        found.append((f"case {number + 1}", lambda case=case: run_case(candidate, case, job["tolerance"])))
    return found


def run_test(job, given, number, source):
    scope = types.ModuleType(f"test_{number}")
    sys.modules[scope.__name__] = scope
    scope.__dict__.update(given)
    exec(compile(job["setup"], "setup", "exec"), scope.__dict__)
    run_source(compile(source, f"test_{number}", "exec"), scope, job["entry_point"])


def run_case(candidate, case, tolerance):
    result = candidate(*case["arguments"], **case["keywords"])
    if not same(result, case["expected"], tolerance):
        raise AssertionError(f"{job_call(case)} gave {repr(result)[:200]}, expected {repr(case['expected'])[:200]}")


def job_call(case):
    return f"{repr(case['arguments'])[1:-1][:200]}"


def run_source(code, scope, entry_point):
    """Run a test's source, then what it defines: `check(candidate)`, `test_*` functions, unittest classes."""
    before = dict(scope.__dict__)
    exec(code, scope.__dict__)
    made = {name: one for name, one in scope.__dict__.items() if before.get(name) is not one}
    if isinstance(made.get("check"), types.FunctionType) and entry_point:
        made["check"](scope.__dict__[entry_point])
    for name, one in made.items():
        if name.startswith("test") and isinstance(one, types.FunctionType):
            one()
        elif isinstance(one, type) and "unittest" in sys.modules:
            run_unittest(one)


def run_unittest(cls):
    import unittest

    if issubclass(cls, unittest.TestCase):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(cls).run(result)
        if result.failures or result.errors or not result.testsRun:
            raise AssertionError(
                (result.failures + result.errors or [("", "no test in the class")])[0][1].strip()[-1000:]
            )


def described(error):
    """One line; the text may have to be fetched from the process under test, which may refuse."""
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")[:1000]
    except BaseException:
        return type(error).__name__


def end_time(*_):
    raise TimeLimit


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def tell(**line):
        out.write(json.dumps(line) + "\n")
        out.flush()

    with open(sys.argv[1], encoding="utf-8") as source:
        job = json.load(source)
    client = Client(int(os.environ.pop("GYMFLOW_CHANNEL")), job["own_operators"])
    signal.signal(signal.SIGALRM, end_time)
    signal.setitimer(signal.ITIMER_REAL, job["time_limit_s"])
    tell(event="ready")
    try:
        client.ask("load", path="/work/solution.py")
        answered = client.ask("names", names=job["names"])
        # Only what was asked for: else the solution could put its own `abs` or `isinstance` into the tests.
        given = (
            {name: answered[name] for name in job["names"] if name in answered} if isinstance(answered, dict) else {}
        )
        if job["entry_point"] and job["entry_point"] not in given:
            raise NameError(f"the solution does not define {job['entry_point']!r}")
    except TimeLimit:
        tell(event="timeout", test=None)
        return
    except wire.Gone:
        tell(event="gone", test=None)
        return
    except Exception as error:
        tell(event="load", error=described(error))
        return
    tell(event="loaded")
    for name, run in tests_of(job, given):
        tell(event="begin", test=name)
        try:
            run()
            tell(event="passed", test=name)
        except wire.Gone:
            tell(event="gone", test=name)
            return
        except TimeLimit:
            tell(event="timeout", test=name)
            return
        except BaseException as error:
            tell(event="failed", test=name, error=described(error))
    tell(event="done")


if __name__ == "__main__":
    main()
