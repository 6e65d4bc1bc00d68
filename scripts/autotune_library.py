"""libautotune.so by ctypes, and the GEGLU-MLP problems of suite files. Mirrors autotune/c_api.h."""
import ctypes

# As the enumerations of c_api.h are numbered.
DTYPES = ("bf16", "fp16", "tf32", "fp32")
LAYOUTS = ("tn", "tt")
ACTIVATIONS = ("gelu_tanh", "gelu_erf", "silu", "relu")
MATCHES = ("exact", "nearest_problem", "other_device", "default_config")
WORKSPACE_MARKS = 64 * 1024  # bytes, zero before the first launch


class CProblem(ctypes.Structure):
    """autotune_problem of c_api.h."""
    _fields_ = [("size", ctypes.c_size_t), ("family", ctypes.c_char_p), ("m", ctypes.c_int64),
                ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("dtype", ctypes.c_int32),
                ("out_dtype", ctypes.c_int32), ("layout", ctypes.c_int32), ("lda", ctypes.c_int64),
                ("ldb", ctypes.c_int64), ("ldc", ctypes.c_int64), ("alpha", ctypes.c_double),
                ("beta", ctypes.c_double), ("timing", ctypes.c_int32),
                ("exact_fp32", ctypes.c_int64), ("activation", ctypes.c_int64)]


class COptions(ctypes.Structure):
    """autotune_options of c_api.h."""
    _fields_ = [("size", ctypes.c_size_t), ("cache", ctypes.c_char_p), ("bundle", ctypes.c_char_p),
                ("device", ctypes.c_char_p), ("ordinal", ctypes.c_int32),
                ("use_cache", ctypes.c_int32), ("allow_compile", ctypes.c_int32)]


class Library:
    """libautotune.so with one session. What it refuses is a RuntimeError with its sentence."""

    def __init__(self, path, cache="", ordinal=0):
        self.c = ctypes.CDLL(path)
        if self.c.autotune_abi_version() != 1:
            raise RuntimeError(f"{path} has another ABI version than this script")
        for text in ("error_message", "session_message", "answer_config", "answer_from_problem"):
            getattr(self.c, f"autotune_{text}").restype = ctypes.c_char_p
        self.c.autotune_kernel_workspace_bytes.restype = ctypes.c_int64
        options = COptions(ctypes.sizeof(COptions), cache.encode() if cache else None, None, None,
                           ordinal, 1, 1)
        self.session = self.made("session_open", ctypes.byref(options))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.c.autotune_error_message().decode())

    def made(self, function, *arguments):
        handle = ctypes.c_void_p()
        self.check(getattr(self.c, f"autotune_{function}")(*arguments, ctypes.byref(handle)))
        return handle

    def message(self):
        return self.c.autotune_session_message(self.session).decode()

    def answer(self, problem):
        answer = self.made("session_best_config", self.session, ctypes.byref(problem))
        found = {"match": MATCHES[self.c.autotune_answer_match(answer)],
                 "from_problem": self.c.autotune_answer_from_problem(answer).decode(),
                 "config": self.c.autotune_answer_config(answer).decode()}
        self.c.autotune_answer_free(answer)
        return found

    def kernel(self, problem):
        """Loaded into the current context, and the bytes of its workspace."""
        kernel = self.made("session_kernel", self.session, ctypes.byref(problem))
        return kernel, max(self.c.autotune_kernel_workspace_bytes(kernel), WORKSPACE_MARKS)

    def launch(self, kernel, pointers, stream, workspace):
        """Of x, gate, up, down and y."""
        addresses = [ctypes.c_void_p(each) for each in (*pointers, stream, workspace)]
        self.check(self.c.autotune_kernel_launch_mlp(kernel, *addresses))


def fields(text):
    """'a: b, c: d' as a dict."""
    pairs = (pair.partition(":") for pair in text.split(",") if pair.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def checked(problem):
    problem = {"activation": "gelu_tanh", "dtype": "bf16", "layout": "tn", **problem}
    choices = {"family": ("geglu_mlp",), "dtype": DTYPES, "layout": LAYOUTS,
               "activation": ACTIVATIONS}
    for name, accepted in choices.items():
        if problem.get(name) not in accepted:
            raise ValueError(f"{name} {problem.get(name)}: only {', '.join(accepted)} will do here")
    sizes = ("tokens", "hidden", "intermediate")
    for name in sizes:
        if not problem.get(name, "").isdecimal():
            raise ValueError(f"{name} '{problem.get(name, '')}' is not a number")
        problem[name] = int(problem[name])
    unknown = set(problem).difference(choices, sizes, ("rtol", "atol"))
    if unknown:
        raise ValueError(f"'{unknown.pop()}' will not do here")
    return problem


def read_suite(text):
    """The problems of a suite that lists them as `- {name: value, ...}`: needs no YAML package."""
    common, own = {}, []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("- {") and line.endswith("}"):
            own.append(fields(line[3:-1]))
        elif line != "problems:":
            common.update(fields(line))
    return [checked({**common, **each}) for each in own]


def c_problem(p):
    dtype = DTYPES.index(p["dtype"])
    out = DTYPES.index("fp32") if p["dtype"] == "tf32" else dtype
    return CProblem(ctypes.sizeof(CProblem), b"geglu_mlp", p["tokens"], p["intermediate"],
                    p["hidden"], dtype, out, LAYOUTS.index(p["layout"]), 0, 0, 0, 1.0, 0.0, 0, 0,
                    ACTIVATIONS.index(p["activation"]))


def describe(p):
    text = f'{p["tokens"]} tokens {p["hidden"]}x{p["intermediate"]} {p["dtype"]} {p["layout"]}'
    return text if p["activation"] == "gelu_tanh" else f'{text} {p["activation"]}'
