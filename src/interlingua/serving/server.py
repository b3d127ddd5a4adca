"""The processes of a server: one, or several that share a socket and the memory of the weights.

uvicorn starts workers as new processes, each of which loads the model: two with ``mini`` in float32
take 1,078 MB (proportional set size) and 9.8 s of processor time until they answer. Here workers
are forked after the weights are prepared: two take 641 MB and 6.1 s; a single process takes 539 MB.
So this module supervises the workers; each of them runs uvicorn's server.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

import torch

from interlingua.config.registry import check_choice
from interlingua.encoder.encode import COMPUTE_DTYPES, Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, InterlinguaError, require_extra
from interlingua.serving.hosts import accepted_hosts
from interlingua.serving.json_log import log_libraries_as_json, write_message
from interlingua.serving.model import ServedModel
from interlingua.serving.settings import PACKAGES, ServeSettings
from interlingua.storage.files import PathLike

if TYPE_CHECKING:
    from interlingua.retrieval.indexed_model import IndexedModel
    from interlingua.serving.routes.link_probabilities import LinkCalibrations

BACKLOG = 2048
"""Connections that wait to be accepted."""
RESTART_SECONDS = 1.0
"""Pause before a dead process is replaced, so that processes that fail at their start do not
overload the machine."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
END_SECONDS = 10.0
"""Maximum time, in seconds, for a process to end by itself after its time to stop is over."""


def served_model(
    path: str,
    *,
    names: Sequence[str] = (),
    prompt: str | None = None,
    dtype: str = "auto",
    device: str | None = None,
    threads: int | None = None,
) -> ServedModel:
    """Read a model for a server.

    Args:
        path: of a model directory or a training run, or ``hf:owner/name``.
        names: names of the model in requests; () = the name of its folder.
        prompt: of requests that name none.
        dtype: to compute in.
        device: cpu, cuda, cuda:1.
        threads: of all processes together; default: torch's.

    Raises:
        MissingExtraError: the packages of the extra ``serve`` are not installed.
        CheckpointError: there is no such model.
        ConfigError: the prompt, dtype or device is unknown.
    """
    for package in PACKAGES:
        require_extra(package, extra="serve")
    check_choice("dtype", dtype, COMPUTE_DTYPES)
    if threads is not None:
        torch.set_num_threads(threads)
    encoder = Encoder.load(path, device=device)
    name, *aliases = names or [path.rstrip("/").removeprefix("hf:").rpartition("/")[2]]
    all_threads = torch.get_num_threads()
    # "auto" is measured before workers are forked, so use no threads: they do not survive a fork.
    torch.set_num_threads(1)
    try:
        return ServedModel(encoder, name, prompt=prompt, dtype=cast(Dtype, dtype), aliases=aliases)
    finally:
        torch.set_num_threads(all_threads)


def calibrations_for(
    model: ServedModel, path: str, calibration: PathLike | None = None
) -> LinkCalibrations | None:
    """Load the calibrations that provide the probabilities of links.

    Args:
        model: that is served.
        path: path of the model; ``calibration.json`` in its folder is read if ``calibration`` is
            None. If this file does not fit the model, a line reports the reason, and links have no
            probabilities.
        calibration: a file, which must fit.

    Raises:
        DataError: the named file is missing or holds no calibrations.
        ConfigError: it is of other models or scores.
    """
    from interlingua.serving.routes.link_probabilities import LinkCalibrations, own_calibration

    if calibration is not None:
        return LinkCalibrations(model, calibration)
    found = own_calibration(path)
    if found is None:
        return None
    try:
        return LinkCalibrations(model, found)
    except InterlinguaError as error:
        print(f"warning: links have no probabilities: {error}", file=sys.stderr, flush=True)
        return None


def serve_forever(
    model: ServedModel,
    settings: ServeSettings,
    *,
    host: str,
    port: int,
    workers: int = 1,
    index: PathLike | None = None,
    calibrations: LinkCalibrations | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; accepted requests are finished first.

    Args:
        model: the encoder; warmed up before the first request is accepted.
        settings: limits and the key.
        host: address to listen on.
        port: to listen on; 0 = any free one, which is printed.
        workers: processes, each with its share of the threads. They are forked after the weights
            are prepared, and so share their memory.
        index: folder of an index of the same model, which /search reads.
        calibrations: provide the probabilities of the links of /align.

    Raises:
        InterlinguaError: the address is in use or not this machine's.
        ConfigError: several processes are requested without fork, or on a GPU.
    """
    if workers > 1 and not hasattr(os, "fork"):
        raise ConfigError(
            "several workers require fork, which this system does not have; use one worker"
        )
    if workers > 1 and model.encoder.device.type != "cpu":
        raise ConfigError("several workers require the CPU; start one server for each GPU")
    threads = max(1, torch.get_num_threads() // workers)
    indexed = None if index is None else _indexed_model(model, index)
    listener = _listen(host, port)
    address = listener.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    if workers > 1:
        torch.set_num_threads(1)  # before the first matrix product: threads do not survive a fork
    _warm_up(model)
    run = functools.partial(
        _run,
        model,
        settings,
        listener,
        hosts=accepted_hosts(settings, host, address[0]),
        index=index,
        indexed=indexed,
        calibrations=calibrations,
    )
    print(f"serving {model.name} at http://{shown}:{address[1]}", file=sys.stderr, flush=True)
    with listener:
        if workers == 1:
            run()
            return
        with tempfile.TemporaryDirectory(prefix="interlingua-metrics-") as folder:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder

            def work() -> None:
                torch.set_num_threads(threads)
                run(folder)

            _supervise(work, workers, lambda child: _forget(child, folder))


def _indexed_model(model: ServedModel, index: PathLike) -> IndexedModel:
    """Return the model with the settings of the index, before any process is forked."""
    from interlingua.retrieval.searcher import model_for

    require_extra("lancedb", extra="search")
    return model_for(index, model.encoder, model.name, dtype=model.dtype)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        remedy = "choose another --host or --port"
        raise InterlinguaError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; {remedy}"
        ) from error


def _warm_up(model: ServedModel) -> None:
    """Prepare the weights for inference, which takes seconds that would delay a request."""
    if model.takes_any_language:
        model.embed(model.wrap_tokens([[0]]).sequences, None)
    else:
        model.encoder.frozen_backbone(COMPUTE_DTYPES[model.dtype])


def _run(
    model: ServedModel,
    settings: ServeSettings,
    listener: socket.socket,
    metrics_folder: str | None = None,
    *,
    hosts: frozenset[str] | None = None,
    index: PathLike | None = None,
    indexed: IndexedModel | None = None,
    calibrations: LinkCalibrations | None = None,
) -> None:
    # The metrics library reads its folder's variable when it is imported, so import it only here.
    import uvicorn

    from interlingua.serving.app import make_app
    from interlingua.serving.http_limits import limited_http
    from interlingua.serving.metrics import ServerMetrics

    log_libraries_as_json()
    searcher = None
    if index is not None and indexed is not None:
        # LanceDB starts threads when it is imported, and threads do not survive a fork, so import
        # it only here, too.
        from interlingua.retrieval.passage_index import PassageIndex
        from interlingua.retrieval.searcher import Searcher

        searcher = Searcher(PassageIndex(index), indexed)
    metrics = ServerMetrics(metrics_folder)
    config = uvicorn.Config(
        make_app(
            model,
            settings,
            metrics=metrics,
            searcher=searcher,
            calibrations=calibrations,
            hosts=hosts,
        ),
        http=limited_http(settings),
        ws="none",
        backlog=BACKLOG,
        access_log=False,  # the guards write a line of JSON
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=ceil(settings.stop_seconds),
        timeout_keep_alive=75,
        server_header=False,
    )

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            _end_after(settings.stop_seconds + END_SECONDS)
            super().handle_exit(sig, frame)

    with contextlib.suppress(KeyboardInterrupt):  # raised once more by uvicorn when all is finished
        Server(config).run(sockets=[listener])


def _end_after(seconds: float) -> None:
    """Make the system end this process after a time.

    The system's timer needs neither the event loop nor a thread, as any of these may never finish.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _forget(worker: int, metrics_folder: str) -> None:
    """Subtract the queue of a worker that ended from the sum over all workers.

    Its other counts stay.
    """
    for path in Path(metrics_folder).glob(f"gauge_live*_{worker}.db"):
        path.unlink()


def _supervise(work: Callable[[], None], count: int, forget: Callable[[int], None]) -> None:
    """Keep a number of processes running until a signal to stop, which is passed on to them.

    Args:
        work: of each process.
        count: of processes.
        forget: is called with the id of each that ended.
    """
    children: set[int] = set()
    is_stopping = False
    life = os.pipe()

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal is_stopping
        is_stopping = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    while not is_stopping and len(children) < count:
        _fork(work, children, life)
    while children:
        child, status = os.wait()
        children.discard(child)
        forget(child)
        if not is_stopping:
            ended = os.waitstatus_to_exitcode(status)
            write_message("warning", f"a worker ended with status {ended}; a new worker is started")
            time.sleep(RESTART_SECONDS)
        if not is_stopping:
            _fork(work, children, life)


def _stop_with_parent(life: tuple[int, int]) -> None:
    """Stop this worker, as SIGTERM does, when its parent process has ended, even by SIGKILL.

    Otherwise it would hold the port for ever, and nothing would replace it or stop it.

    Args:
        life: a pipe's ends for reading and for writing. Only the parent keeps the writing end open,
            so the system closes it when the parent ends.
    """
    reading, writing = life
    os.close(writing)

    def wait() -> None:
        os.read(reading, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _fork(work: Callable[[], None], children: set[int], life: tuple[int, int]) -> None:
    """Start a process and add it to the children.

    Signals to stop are blocked until parent and child can handle them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    child = os.fork()
    if child:
        children.add(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        return
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        _stop_with_parent(life)
        work()
        code = 0
    except BaseException as error:
        write_message("error", f"worker failed: {type(error).__name__}: {error}")
        code = 1
    sys.stderr.flush()
    os._exit(code)
