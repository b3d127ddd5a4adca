"""``interlingua.serve`` and ``interlingua serve``: an encoder behind HTTP, until it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from interlingua.config import Between
from interlingua.config.options import MODEL, SEARCH, argument, function_of, option
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.errors import require_extra
from interlingua.serving.settings import PACKAGES, ServeSettings
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs


@dataclass(frozen=True)
class ServeOptions(ServeSettings):
    """Options of ``serve``."""

    model: str = argument(
        "Model folder, run folder, hf:owner/name, or an installed model.",
        DEFAULT_MODEL,
        reads="model",
    )
    name: str | Sequence[str] | None = option(
        None,
        "Name of the model in requests; by default the name of its folder; repeatable for further"
        " names.",
        group=MODEL,
        kind=list[str],
    )
    prompt: str | None = option(
        None,
        "Prompt for requests that name none: the name of a prompt of the model, or a text.",
        group=MODEL,
    )
    dtype: str = option(
        "auto", "Type to compute in: float32, bfloat16, float16, int8 or auto.", group=MODEL
    )
    device: str | None = option(
        None, "Device: cpu, cuda, cuda:1; by default a GPU if there is one.", group=MODEL
    )
    # Services besides embeddings.
    index: PathLike | None = option(
        None, "Folder of an index of this model, for /search.", group=SEARCH, reads="index"
    )
    calibration: PathLike | None = option(
        None,
        "Calibration from interlingua score --learn, for the probabilities of aligned pairs; by"
        " default calibration.json in the model's folder.",
        group=SEARCH,
        reads="file",
    )
    # Address, processes and threads.
    host: str = option(
        "127.0.0.1", "Address to listen on; 0.0.0.0 for all addresses of the machine."
    )
    port: Annotated[int, Between(0, 65_535)] = option(
        8000, "Port to listen on; 0 for any free port."
    )
    workers: Annotated[int, Between(1, 256)] = option(
        1, "Number of processes; they share the weights in memory."
    )
    threads: Annotated[int, Between(1, 1024)] | None = option(
        None, "Number of CPU threads of all processes together; by default all cores."
    )


def run_serve(options: ServeOptions) -> None:
    """Serve a model over HTTP, until SIGTERM or Ctrl-C.

    The protocols are OpenAI's and text-embeddings-inference's, and there is a page at /.

    Args:
        options: of the verb.

    Raises:
        ConfigError: an option is wrong.
        CheckpointError: there is no such model.
        InterlinguaError: the address is in use, or not this machine's.
    """
    for package in PACKAGES:
        require_extra(package, extra="serve")
    check_inputs(options)
    from interlingua.serving.server import calibrations_for, serve_forever, served_model

    computing: Any = {"dtype": options.dtype, "device": options.device, "threads": options.threads}
    names = [options.name] if isinstance(options.name, str) else options.name
    encoder = served_model(options.model, names=names or (), prompt=options.prompt, **computing)
    serve_forever(
        encoder,
        options,
        host=options.host,
        port=options.port,
        workers=options.workers,
        index=options.index,
        calibrations=calibrations_for(encoder, options.model, options.calibration),
    )


serve = function_of(ServeOptions, run_serve, "serve")
