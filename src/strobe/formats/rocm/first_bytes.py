"""How the JSON of rocprofv3 begins."""

_JSON = b'"rocprofiler-sdk-tool"'


def is_json(head: bytes) -> bool:
    """Return whether these are the first bytes of it."""
    return head.lstrip().startswith(b"{") and _JSON in head[:256]
