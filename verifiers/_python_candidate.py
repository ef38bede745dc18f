"""The process under test: loads the solution and does what the testing process asks for, over GYMFLOW_CHANNEL.

It knows no test and no expected value; whatever the solution does to it, it can only answer with values.
"""

# Runs in the sandbox, by whichever Python that has.
# ruff: noqa: PTH100, PTH103, PTH112, PTH118, PTH120, PTH123
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

import builtins
import os
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _python_wire as wire

sys.path.pop(0)
# Without `site` an interpreter starts in a third of the time; installed packages are still to be found.
sys.path += [p for p in (f"{r}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages" for r in ("/opt/venv", sys.prefix)) if os.path.isdir(p)][:1]  # fmt: skip

# Before any code of the solution runs: what a class says of itself then changes nothing.
_bases, _members = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__


class Server:
    def __init__(self, channel):
        self.input = os.fdopen(channel, "rb", closefd=False)
        self.output = os.fdopen(channel, "wb", closefd=False)
        self.objects = {}
        self.names = {}
        self.patched = {}

    def load(self, path):
        module = types.ModuleType("solution")
        module.__file__ = path
        sys.modules["solution"] = module
        with open(path, encoding="utf-8", errors="surrogateescape") as source:
            code = compile(source.read(), "solution.py", "exec", dont_inherit=True)
        exec(code, module.__dict__)
        return module.__dict__

    def serve(self, until=None):
        while True:
            request = wire.receive(self.input)
            if request["op"] == "answer":
                return request
            wire.send(self.output, self.answer(request))

    def answer(self, request):
        try:
            arguments = [self.value(one) for one in request.get("args", ())]
            keywords = {name: self.value(one) for name, one in request.get("kwargs", {}).items()}
            result = getattr(self, "do_" + request["op"])(request, arguments, keywords)
            reply = {"value": self.plain(result)}
            if request["op"] == "call":
                reply["args"] = [
                    self.plain(one) if isinstance(one, (list, dict, set, bytearray)) else None for one in arguments
                ]
            return reply
        except BaseException as error:
            return {"error": self.failure(error)}

    def failure(self, error):
        bases = [base.__name__ for base in type(error).__mro__ if getattr(builtins, base.__name__, None) is base]
        try:
            arguments = [self.plain(one) for one in error.args]
        except BaseException:
            arguments = []
        try:
            text = str(error)[:2000]
        except BaseException:
            text = ""
        return {"type": type(error).__name__, "bases": bases, "args": arguments, "text": text, "class": self.handle(type(error))}  # fmt: skip

    def value(self, message):
        return wire.decode(message, self.other)

    def other(self, message):
        if message["t"] == "ref":
            return self.objects[message["id"]]
        number = message["id"]

        def callback(*args, **kwargs):
            wire.send(self.output, {"call": number, "args": [self.plain(a) for a in args], "kwargs": {k: self.plain(v) for k, v in kwargs.items()}})  # fmt: skip
            answer = self.serve()
            if "error" in answer:
                raise getattr(builtins, answer["error"], RuntimeError)(answer["text"])
            return self.value(answer["value"])

        return callback

    def plain(self, value):
        return wire.encode(value, self.handle)

    def handle(self, value):
        numpy = sys.modules.get("numpy")
        if (
            numpy is not None
            and isinstance(value, getattr(numpy, "generic", ()))
            and type(value.item()) is not type(value)
        ):
            return wire.encode(value.item(), self.handle)
        self.objects[id(value)] = value
        kind = "exception" if isinstance(value, type) and issubclass(value, BaseException) else "object"
        message = {"t": kind, "id": id(value), "class": type(value).__name__, "name": getattr(value, "__name__", None)}
        if kind == "exception":
            message["bases"] = [
                base.__name__ for base in value.__mro__ if getattr(builtins, base.__name__, None) is base
            ]
        return message

    def do_load(self, request, arguments, keywords):
        self.names = self.load(request["path"])

    def do_workspace(self, request, arguments, keywords):
        """Unpack a workspace whose modules the tests import."""
        import tarfile

        os.makedirs(request["folder"], exist_ok=True)
        with tarfile.open(request["archive"]) as packed:
            packed.extractall(request["folder"])
        os.chdir(request["folder"])
        sys.path[:0] = [request["folder"], *(os.path.join(request["folder"], name) for name in ("src", "lib"))]

    def do_module(self, request, arguments, keywords):
        """A module of the workspace; None where there is none of that name."""
        import importlib

        try:
            return importlib.import_module(request["name"])
        except ModuleNotFoundError as error:
            if error.name == request["name"]:
                return None
            raise

    def do_names(self, request, arguments, keywords):
        """Of the wanted names those that the solution has, without modules: the tests import their own."""
        return {
            name: self.names[name]
            for name in request["names"]
            if name in self.names
            and not isinstance(self.names[name], types.ModuleType)
            and getattr(self.names[name], "__module__", "solution") in ("solution", None)
        }

    def do_call(self, request, arguments, keywords):
        return self.objects[request["id"]](*arguments, **keywords)

    def do_getattr(self, request, arguments, keywords):
        return getattr(self.objects[request["id"]], request["name"])

    def do_setattr(self, request, arguments, keywords):
        subject, name = self.objects[request["id"]], request["name"]
        if isinstance(subject, types.ModuleType) and hasattr(subject, name):
            self.patched.setdefault((request["id"], name), getattr(subject, name))
        setattr(subject, name, arguments[0])

    def do_delattr(self, request, arguments, keywords):
        """Also how a test takes a patch of a module back: the testing side cannot see what stood there before."""
        subject, key = self.objects[request["id"]], (request["id"], request["name"])
        if key in self.patched:
            setattr(subject, request["name"], self.patched.pop(key))
        else:
            delattr(subject, request["name"])

    def do_special(self, request, arguments, keywords):
        subject, name = self.objects[request["id"]], request["name"]
        if not hasattr(type(subject), name):
            raise TypeError(f"{type(subject).__name__!r} object has no {name}")
        result = getattr(type(subject), name)(subject, *arguments)
        if result is NotImplemented:
            raise TypeError(f"{type(subject).__name__!r} object has no {name} for this")
        return result

    def do_bool(self, request, arguments, keywords):
        return bool(self.objects[request["id"]])

    def do_text(self, request, arguments, keywords):
        return str.__str__((repr if request["name"] == "repr" else str)(self.objects[request["id"]]))

    def do_iter(self, request, arguments, keywords):
        return iter(self.objects[request["id"]])

    def do_next(self, request, arguments, keywords):
        for value in self.objects[request["id"]]:
            return [value]
        return []

    def do_isinstance(self, request, arguments, keywords):
        return isinstance(arguments[0], self.objects[request["id"]])

    def do_state(self, request, arguments, keywords):
        """What an object holds, for a comparison that is not its own: read past what its class says of itself."""
        value = self.objects[request["id"]]
        held = {}
        for base in _bases(type(value)):
            for name, member in _members(base).items():
                if type(member) is types.MemberDescriptorType:
                    try:
                        held[name] = member.__get__(value)
                    except AttributeError:
                        continue
                elif name == "__dict__" and type(member) is types.GetSetDescriptorType and base is not type:
                    held.update(member.__get__(value))
        return [id(type(value)), held if held else id(value)]


if __name__ == "__main__":
    try:
        Server(int(os.environ.pop("GYMFLOW_CHANNEL"))).serve()
    except wire.Gone:
        pass
