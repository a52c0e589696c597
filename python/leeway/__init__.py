# SPDX-License-Identifier: Apache-2.0
"""Leeway from Python: ctypes and numpy over libleeway, no compiler.

    import leeway

    model = leeway.load("runs/ddpm")                  # a run, a checkpoint, a model folder
    pictures = model.sample(16, steps=50, seed=1)     # float32 [16,C,H,W] in [-1,1]
    eps = model.run(x, t=t, classes=labels)           # one forward pass
    drift = leeway.field(gen, pos, temperatures=[0.05, 0.2]).field

Arrays are anything numpy takes, tensors of PyTorch on the CPU included; results are numpy arrays
(`torch.from_numpy` shares their memory). A picture is the one `leeway sample` makes with the same
seed and number, to the bit.

Objects may be closed, or let go, in any order and in callbacks. What depends on one is closed with it:
samplers with their model and their device, models with a GPU that was asked to compute with them, for it
may have their weights. What a callback closes is freed when the call that it is in returns.

The library is $LEEWAY_LIBRARY, else libleeway.so.0 in this package, else the system's.
"""
import collections
import collections.abc
import ctypes
import ctypes.util
import functools
import operator
import os
import threading

import numpy as np

__all__ = ["Device", "Error", "Field", "Model", "Sampler", "UsageError", "field", "load", "version"]

_SONAME = "libleeway.so.0"
_NEEDED = 2  # LW_API_VERSION


class Error(RuntimeError):
    """What the library refused or could not do; `code` is its number (LW_ERROR_* of leeway.h)."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    def __reduce__(self):  # with what it is made of, so that it goes from process to process
        return type(self), (self.code,) + self.args


class UsageError(Error, ValueError):
    """An argument that is refused, or the use of what is closed: an Error of code -2, LW_ERROR_USAGE."""

    def __init__(self, message):
        super().__init__(-2, message)

    def __reduce__(self):
        return type(self), self.args


# ---- the library ---------------------------------------------------------------------------------

_PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_CANCEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_PREVIEW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int,
                            ctypes.c_int, ctypes.POINTER(ctypes.c_float))


class _Sized(ctypes.Structure):
    """A struct of leeway.h whose first field is its size."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class _Callbacks(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("self", ctypes.c_void_p), ("progress", _PROGRESS),
                ("cancel", _CANCEL), ("preview", _PREVIEW)]


class _DeviceOptions(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("isa", ctypes.c_char_p)]


class _ModelInfo(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_char_p), ("network", ctypes.c_char_p),
                ("parameters", ctypes.c_int64), ("channels", ctypes.c_int),
                ("image_size", ctypes.c_int), ("classes", ctypes.c_int), ("latent", ctypes.c_int),
                ("method", ctypes.c_char_p), ("noise_size", ctypes.c_int)]


class _SessionOptions(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("batch", ctypes.c_int), ("height", ctypes.c_int),
                ("width", ctypes.c_int), ("output", ctypes.c_char_p)]


class _TensorInfo(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("is_output", ctypes.c_int),
                ("element", ctypes.c_int), ("rank", ctypes.c_int), ("shape", ctypes.c_int64 * 4),
                ("bytes", ctypes.c_size_t)]


class _Rows(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("in_", ctypes.c_void_p), ("out", ctypes.c_void_p)]


class _SamplerOptions(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("batch", ctypes.c_int), ("steps", ctypes.c_int),
                ("sampler", ctypes.c_char_p), ("seed", ctypes.c_uint64),
                ("precision", ctypes.c_char_p)]


class _SamplerInfo(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("sampler", ctypes.c_char_p),
                ("evaluations", ctypes.c_int), ("channels", ctypes.c_int),
                ("height", ctypes.c_int), ("width", ctypes.c_int), ("classes", ctypes.c_int)]


class _FieldRequest(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("groups", ctypes.c_int64), ("slots", ctypes.c_int64),
                ("channels", ctypes.c_int64), ("generated", ctypes.c_int64),
                ("positives", ctypes.c_int64), ("unconditional", ctypes.c_int64),
                ("x", ctypes.c_void_p), ("positive", ctypes.c_void_p), ("uncond", ctypes.c_void_p),
                ("uncond_weight", ctypes.c_void_p), ("temperatures", ctypes.c_void_p),
                ("temperature_count", ctypes.c_int), ("rows_only", ctypes.c_int),
                ("variant", ctypes.c_int), ("field", ctypes.c_void_p),
                ("gradient", ctypes.c_void_p)]


class _FieldReport(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("temperature_count", ctypes.c_int),
                ("scale", ctypes.c_double), ("sigma", ctypes.c_double), ("loss", ctypes.c_double),
                ("lambdas", ctypes.c_double * 8), ("raw_mean_v2", ctypes.c_double * 8)]


def _places():
    """Where the library may be. The system is asked last: that can start a compiler."""
    asked = os.environ.get("LEEWAY_LIBRARY")
    if asked:
        yield asked
        return
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), _SONAME)
    if os.path.exists(beside):
        yield beside
    yield _SONAME
    found = ctypes.util.find_library("leeway")
    if found:
        yield found


def _open():
    why = []
    for path in _places():
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as e:
            why.append(str(e))
    else:
        raise ImportError("%s is not found: set LEEWAY_LIBRARY to it (%s)" % (_SONAME, "; ".join(why)))
    version = getattr(library, "lw_api_version", None)  # first: an older library lacks names below
    if not version or version() < _NEEDED:
        raise ImportError("%s has %s, version %d of leeway's interface is needed"
                          % (library._name, "version %d" % version() if version else "no lw_api_version", _NEEDED))
    library.lw_api_release.restype = ctypes.c_char_p
    library.lw_error_message.restype = ctypes.c_char_p
    library.lw_model_class_name.restype = ctypes.c_char_p
    library.lw_device_isa.restype = ctypes.c_char_p
    return library


_lib = _open()


def _check(code):
    if code < 0:
        message = _lib.lw_error_message().decode("utf-8", "replace")
        raise UsageError(message) if code == -2 else Error(code, message)
    return code


# ---- arguments -----------------------------------------------------------------------------------

_INT, _INT64, _UINT64 = 2 ** 31 - 1, 2 ** 63 - 1, 2 ** 64 - 1  # ctypes would take what is above modulo


def _text(what, value):
    """str, bytes or os.PathLike, as the bytes of a path."""
    if value is None:
        return None
    text = os.fsencode(value)
    if b"\0" in text:
        raise UsageError("%s is %r: must have no NUL" % (what, value))
    return text


def _whole(what, value, most, or_else=""):
    """A whole number of 0 to most, of Python, numpy or PyTorch."""
    try:
        value = number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= most:
        raise UsageError("%s is %r: must be a whole number, 0 to %d%s" % (what, value, most, or_else))
    return number


def _labels(values, names, most):
    """Numbers or names of classes, one or many."""
    labels = []
    values = list(values) if isinstance(values, collections.abc.Iterator) else values
    for i, label in enumerate(_array(values, object, "classes", 1)):
        if isinstance(label, str):
            label = names.index(label) if label in names else int(label) if label.isdecimal() else label
        labels.append(_whole("classes[%d]" % i, label, most, ", or a class's name"))
    return np.array(labels, np.int32)


def version():
    """Release and commit of the library in use."""
    return _lib.lw_api_release().decode()


def _array(value, dtype, what, rank=None):
    """Dense, of that type; tensors of PyTorch without a copy where numpy can."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if np.iscomplexobj(value):
        raise UsageError("%s is complex: real numbers are wanted" % what)
    out = np.ascontiguousarray(value, dtype=dtype)
    if rank is not None and out.ndim != rank:
        raise UsageError("%s has shape %s: %d dimensions are wanted" % (what, out.shape, rank))
    return out


def _address(array):
    return None if array is None else array.ctypes.data


_local = threading.local()  # of each thread: `device`, its own; `waiting`, handles to close


class _Handle:
    """An object of the library, and the one place that knows when it may be closed: behind all that borrow
    it, and not while a call of this thread may use it, for which it waits."""

    def __init__(self, kind, close):
        self.kind, self._close = kind, close
        self.pointer = ctypes.c_void_p()
        self.closed = None  # else how it was
        self._lenders, self._borrowers = [], []  # the objects it borrows, the handles that borrow it

    def borrow(self, owner):
        """From now on owner stays, and is not closed before this is."""
        if owner not in self._lenders:
            self._lenders.append(owner)
            owner._handle._borrowers.append(self)

    def close(self, how="closed"):
        self.closed = self.closed or how
        for borrower in self._borrowers[::-1]:
            borrower.close("closed with its " + self.kind)
        if self.pointer:
            getattr(_lib, self._close)(ctypes.byref(self.pointer))
        if self.pointer:  # the library refused it
            _local.__dict__.setdefault("waiting", []).append(self)
            return
        lenders, self._lenders = self._lenders, []
        for owner in lenders:
            owner._handle._borrowers.remove(self)


def _close_waiting():
    """Behind every call that has callbacks; inside another one they wait on."""
    for handle in _local.__dict__.pop("waiting", ()):
        handle.close()


class _Owned:
    """One object of the library, closed once."""

    _close = None

    def __init__(self):
        self._handle = _Handle(type(self).__name__, self._close)

    def close(self):
        """Closes it, and what depends on it before; otherwise when nobody refers to it. In a callback:
        when the call that is running returns; nothing can be asked of it from now on."""
        self._handle.close()

    def _open_handle(self):
        if self._handle.closed:
            raise UsageError("this %s was %s" % (type(self).__name__, self._handle.closed))
        return self._handle.pointer

    def __del__(self):
        if getattr(self, "_handle", None) and _lib:
            self.close()

    def __reduce_ex__(self, protocol):
        """Of a copy that is let go the original would be closed, too."""
        raise TypeError("a leeway.%s cannot be copied or pickled: open it once more" % type(self).__name__)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def _join(handle, device, model):
    """What a session or a sampler is made of: device and model, borrowed. A GPU that is asked has the model's
    weights from now on, even where it then has no room to compute."""
    made_of = device._open_handle(), model._open_handle()
    handle.borrow(device)
    handle.borrow(model)
    if device.isa == "cuda":
        model._handle.borrow(device)
    return made_of


class _Calls:
    """Python functions as callbacks. What one raises stops the call and is raised from it, and so is what a handler
    of a signal raises meanwhile (Ctrl-C). Such a handler runs where Python code goes on, and C could hand on nothing
    that a function raises in its first line: therefore C calls built-in functions, which give each argument to a
    generator that waits for it within a `try`."""

    def __init__(self, progress=None, preview=None, shape=None):
        self.failure = None

        def on_progress(_self, done, total):
            progress(done, total)

        def on_preview(_self, first, count, step, steps, pixels):
            preview(first, step, steps, np.ctypeslib.as_array(pixels, (count,) + shape).copy())

        self.c = _Callbacks(progress=_PROGRESS(self._callback(on_progress, 3) if progress else 0),
                            cancel=_CANCEL(self._waiting(self._stops, 1)),
                            preview=_PREVIEW(self._callback(on_preview, 6) if preview else 0))

    def _callback(self, function, count):
        return functools.partial(max, key=self._waiting(function, count))  # calls key with every argument

    def _waiting(self, function, count):
        taking = self._take(function, count)
        next(taking)
        return taking.send

    def _take(self, function, count):
        """Of every `count` values function is called; yields what it returned, else 0."""
        values, answer = [], 0
        while True:
            try:
                while True:
                    values.append((yield answer))
                    answer = 0
                    if len(values) == count:
                        answer = self._guard(function, *values)
                        values = []
            except GeneratorExit:
                return
            except BaseException as e:  # of a handler
                self.failure, answer = e, 1

    def _stops(self, _self):
        return int(self.failure is not None)

    def _guard(self, function, *values):
        if self.failure is None:
            try:
                return function(*values) or 0
            except BaseException as e:  # it must not pass through C
                self.failure = e
        return 1

    def check(self, code):
        """What the call that had them returned."""
        try:
            if self.failure is not None:
                raise self.failure
            return _check(code)
        finally:  # behind the message, which a refused close would replace
            _close_waiting()


# ---- devices -------------------------------------------------------------------------------------

class Device(_Owned):
    """Threads and kernels. threads 0: all processors this process may use; isa: "ref", "avx2",
    "avxvnni", "avx512", "avx512bf16", "amx" or None, the best there is. Used by one thread at a time.
    Closing it closes its samplers; a GPU, the models that it was asked to compute with, too."""

    _close = "lw_device_close"

    def __init__(self, threads=0, isa=None):
        super().__init__()
        options = _DeviceOptions(threads=_whole("threads", threads, 4096), isa=_text("isa", isa))
        pointer = self._handle.pointer
        _check(_lib.lw_device_open(ctypes.byref(options), ctypes.byref(pointer)))
        self.threads = _check(_lib.lw_device_threads(pointer))
        self.isa = _lib.lw_device_isa(pointer).decode()


def _device(device):
    """The one given, else one of this thread's own."""
    if device is None:
        if getattr(_local, "device", None) is None:
            _local.device = Device()
        device = _local.device
    return device


# ---- models --------------------------------------------------------------------------------------

class Model(_Owned):
    """A network and its weights: kind ("unet", "dit", "encoder", "decoder", "rehearsal"), network, parameters, channels,
    image_size, classes, class_names, latent, method ("ddpm", "drift", "flow", None), noise_size. Closing it closes
    its samplers. One GPU computes with it: load it again for another."""

    _close = "lw_model_close"

    def __init__(self, path):
        super().__init__()
        pointer = self._handle.pointer
        _check(_lib.lw_model_open(_text("path", path), ctypes.byref(pointer)))
        info = _ModelInfo()
        _check(_lib.lw_model_describe(pointer, ctypes.byref(info)))
        for name, _ in _ModelInfo._fields_[1:]:
            value = getattr(info, name)
            setattr(self, name, value.decode() if isinstance(value, bytes) else value)
        names = [_lib.lw_model_class_name(pointer, i) for i in range(self.classes)]
        self.class_names = [n.decode() if n else str(i) for i, n in enumerate(names)]

    def __repr__(self):
        return "<leeway.Model %s, %d parameters>" % (self.network, self.parameters)

    def run(self, x, t=None, classes=None, latent=None, output=None, batch=16, device=None,
            progress=None):
        """One forward pass of any number of rows: x [N,C,H,W], t [N] times, classes [N], numbers or
        names, latent [N,K] where the network has them; what is not given is zero. output: None, the
        first ("y" of a U-Net); a name; or "a,b" or "*", then a dict. batch: 0 to 65536 rows at a time.
        progress(done, total)."""
        device = _device(device)
        x = _array(x, np.float32, "x", 4)
        given = {"x": x}
        if classes is not None:
            given["class"] = _labels(classes, self.class_names, _INT)
        for name, value in (("t", t), ("latent", latent)):
            if value is not None:
                given[name] = _array(value, np.float32, name)
        output = _text("output", output)
        options = _SessionOptions(batch=max(1, min(_whole("batch", batch, 65536), len(x))),
                                  height=_whole("height of x", x.shape[2], 32768),
                                  width=_whole("width of x", x.shape[3], 32768), output=output)
        session = _Handle("session", "lw_session_free")
        try:
            _check(_lib.lw_session_new(*_join(session, device, self), ctypes.byref(options),
                                       ctypes.byref(session.pointer)))
            results = self._run_rows(session.pointer, given, progress)
        finally:
            session.close()
        several = output is not None and (b"," in output or output == b"*")
        return results if several else next(iter(results.values()))

    def _run_rows(self, session, given, progress):
        rows, results, waiting = [], {}, dict(given)
        n = len(given["x"])
        for i in range(_check(_lib.lw_session_tensors(session))):
            info = _TensorInfo()
            _check(_lib.lw_session_tensor(session, i, ctypes.byref(info)))
            name, shape = info.name.decode(), (n,) + tuple(info.shape[1:info.rank])
            if info.is_output:
                results[name] = np.empty(shape, np.float32)
                rows.append(_Rows(info.name, None, _address(results[name])))
            elif name in waiting:
                value = waiting.pop(name)
                if value.shape != shape:
                    raise UsageError("%s has shape %s: %s is wanted" % (name, value.shape, shape))
                rows.append(_Rows(info.name, _address(value), None))
        if waiting:
            raise UsageError("%s does not take %s" % (self.network, ", ".join(waiting)))
        calls = _Calls(progress)
        calls.check(_lib.lw_session_run_rows(session, ctypes.c_int64(n),
                                             (_Rows * len(rows))(*rows), len(rows),
                                             ctypes.byref(calls.c)))
        return results

    def sampler(self, steps=0, sampler=None, seed=0, precision=None, batch=16, device=None):
        """A Sampler, to be asked for pictures more than once. steps: evaluations of the network a
        picture, 0: as the sampler has it; sampler: "one-step", "ddim", "ancestral", "dpm-solver", "euler", "heun",
        None: the model's own; seed: 0 to 2^64 - 1; precision: "f32", "bf16", "int8"; batch: 0 to 65536
        pictures at a time, 0: 16, which never changes them."""
        return Sampler(self, steps, sampler, seed, precision, batch, device)

    def sample(self, n=16, first=0, classes=None, progress=None, preview=None, **options):
        """Pictures number first .. first + n - 1, float32 [n,C,H,W] in [-1,1]; options are those of
        sampler(), the rest those of Sampler.pictures()."""
        with self.sampler(**options) as s:
            return s.pictures(n, first, classes, progress, preview)


class Sampler(_Owned):
    """Makes pictures of a generator: sampler (its name), evaluations, shape (C, H, W), classes. Closed with
    its model or its device."""

    _close = "lw_sampler_close"

    def __init__(self, model, steps=0, sampler=None, seed=0, precision=None, batch=16,
                 device=None):
        super().__init__()
        options = _SamplerOptions(batch=_whole("batch", batch, 65536),
                                  steps=_whole("steps", steps, _INT),
                                  sampler=_text("sampler", sampler),
                                  seed=_whole("seed", seed, _UINT64),
                                  precision=_text("precision", precision))
        pointer, self._class_names = self._handle.pointer, model.class_names
        _check(_lib.lw_sampler_open(*_join(self._handle, _device(device), model),
                                    ctypes.byref(options), ctypes.byref(pointer)))
        info = _SamplerInfo()
        _check(_lib.lw_sampler_describe(pointer, ctypes.byref(info)))
        self.sampler, self.evaluations = info.sampler.decode(), info.evaluations
        self.shape, self.classes = (info.channels, info.height, info.width), info.classes

    def pictures(self, n=16, first=0, classes=None, progress=None, preview=None):
        """Pictures number first .. first + n - 1, float32 [n,C,H,W] in [-1,1]. classes: numbers, 0 to
        the model's classes - 1, or names, one or many, gone through in turn; None: number i is of class
        i modulo classes.
        progress(done, total) behind every batch, preview(first, step, steps, pixels) behind every
        evaluation; what they raise ends the sampling."""
        pointer, labels = self._open_handle(), None
        n, first = _whole("n", n, _INT64), _whole("first", first, _INT64)
        if classes is not None:
            labels = _labels(classes, self._class_names, self.classes - 1 if self.classes else _INT)
            if not len(labels):
                raise UsageError("classes is empty: must be one or more")
            labels = np.resize(labels, n)
        out = np.empty((n,) + self.shape, np.float32)
        calls = _Calls(progress, preview, self.shape)
        calls.check(_lib.lw_sampler_pictures(pointer, ctypes.c_int64(first),
                                             ctypes.c_int64(n), ctypes.c_void_p(_address(labels)),
                                             ctypes.byref(calls.c), ctypes.c_void_p(_address(out))))
        return out


def load(path):
    """Opens a run directory, a checkpoint, a model folder or a file of weights. path: str, bytes or
    os.PathLike."""
    return Model(path)


# ---- the drift field -----------------------------------------------------------------------------

Field = collections.namedtuple("Field", "field gradient scale sigma loss lambdas raw_mean_v2")
Field.__doc__ = """The drift field and what is said of it (docs/drifting.md): field F in units of
sigma, gradient of the loss or None, scale S, sigma, loss, and for each temperature lambda and the
mean of V^2."""

_VARIANTS = {"official": 0, "plain": 1, "tau-times-dim": 2}


def _dense(value, what):
    """[N,C], [G,N,C] or [G,N,T,C] as the last."""
    x = _array(value, np.float32, what)
    if x.ndim not in (2, 3, 4):
        raise UsageError("%s has shape %s: [N,C], [G,N,C] or [G,N,T,C] is wanted"
                         % (what, x.shape))
    if x.size == 0 and what != "uncond":  # the library takes 0 groups and 0 slots for 1
        raise UsageError("%s has shape %s: none of these may be 0" % (what, x.shape))
    return x.reshape({2: (1,) + x.shape[:1] + (1,) + x.shape[1:],
                      3: x.shape[:2] + (1,) + x.shape[2:], 4: x.shape}[x.ndim])


def field(gen, pos, temperatures=(0.02, 0.05, 0.2), uncond=None, uncond_weight=0.0,
          variant="official", rows_only=False, gradient=False, device=None):
    """The drift field of generated samples `gen` towards positives `pos`, both [N,C], [G,N,C] or
    [G,N,T,C], and away from `uncond` with a weight, a number or one for each group. Result has the
    shape of gen. From PyTorch:

        f = leeway.field(generated, real, [0.05, 0.2])
        goal = generated.detach() + f.sigma * torch.from_numpy(f.field)
        loss = ((generated - goal) / f.sigma).square().mean()
    """
    x, positive = _dense(gen, "gen"), _dense(pos, "pos")
    away = None if uncond is None else _dense(uncond, "uncond")
    for what, other in (("pos", positive), ("uncond", away)):
        if other is not None and (other.shape[0], other.shape[2:]) != (x.shape[0], x.shape[2:]):
            raise UsageError("gen is %s and %s is %s as [G,N,T,C]: only N may differ"
                             % (x.shape, what, other.shape))
    if variant not in _VARIANTS:
        raise UsageError("variant %r: one of %s" % (variant, ", ".join(_VARIANTS)))
    weight = np.full(x.shape[0], uncond_weight, np.float32) if np.ndim(uncond_weight) == 0 \
        else _array(uncond_weight, np.float32, "uncond_weight", 1)
    if len(weight) != x.shape[0]:
        raise UsageError("%d weights for %d groups" % (len(weight), x.shape[0]))
    taus = _array(temperatures, np.float64, "temperatures", 1)
    out = np.empty_like(x)
    slope = np.empty_like(x) if gradient else None
    request = _FieldRequest(
        groups=x.shape[0], generated=x.shape[1], slots=x.shape[2], channels=x.shape[3],
        positives=positive.shape[1], unconditional=0 if away is None else away.shape[1],
        x=_address(x), positive=_address(positive), uncond=_address(away),
        uncond_weight=_address(weight), temperatures=_address(taus), temperature_count=len(taus),
        rows_only=int(rows_only), variant=_VARIANTS[variant], field=_address(out),
        gradient=_address(slope))
    report = _FieldReport()
    _check(_lib.lw_field_run(_device(device)._open_handle(), ctypes.byref(request),
                             ctypes.byref(report)))
    shape = np.shape(gen)
    return Field(out.reshape(shape), None if slope is None else slope.reshape(shape),
                 report.scale, report.sigma, report.loss, list(report.lambdas[:len(taus)]),
                 list(report.raw_mean_v2[:len(taus)]))
