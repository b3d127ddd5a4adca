"""The host names that requests may use.

Another site can make its own host name point at this machine (DNS rebinding). The requests of its
pages then look like those of the server's own page, but still name the other site as their host.
"""

from __future__ import annotations

from ipaddress import ip_address

from interlingua.serving.settings import ServeSettings

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port, brackets and final dot."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].removesuffix(".")


def accepted_hosts(settings: ServeSettings, host: str, address: str) -> frozenset[str] | None:
    """Return the names that requests may give as their host; None for any.

    Args:
        settings: the key and the names that the user allows.
        host: the option ``--host``.
        address: IP address that the server listens on.
    """
    is_open_here = settings.api_key is None and ip_address(address).is_loopback
    if settings.allowed_hosts is None and not is_open_here:
        return None
    allowed = [host_name(name) for name in settings.allowed_hosts or ()]
    return frozenset([*LOOPBACK_HOSTS, host.lower(), address, *allowed])
