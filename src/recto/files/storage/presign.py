"""Presigned S3 URLs (AWS Signature Version 4). Our own code, because the URL also sets response headers."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
# Longest validity that S3 allows.
MOST_SECONDS = 604_800


@dataclass(frozen=True, kw_only=True)
class S3Credentials:
    """S3 keys and their region. `token` belongs to temporary keys."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    region: str = "us-east-1"


def presign(
    url: str, who: S3Credentials, *, now: datetime, seconds: float, query: Mapping[str, str] | None = None
) -> str:
    """Return a presigned URL for GET of an object. The signature includes `query`."""
    split = urlsplit(url)
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{who.region}/s3/aws4_request"
    fields = {
        **(query or {}),
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{who.access_key}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(max(1, min(int(seconds), MOST_SECONDS))),
        "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": who.token} if who.token else {}),
    }
    query_text = "&".join(sorted(f"{_encoded(name)}={_encoded(value)}" for name, value in fields.items()))
    request = "\n".join(("GET", split.path, query_text, f"host:{split.netloc}\n", "host", "UNSIGNED-PAYLOAD"))
    hashed = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{who.secret_key}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    signature = _hmac(key, "\n".join((ALGORITHM, stamp, scope, hashed))).hex()
    return f"{split.scheme}://{split.netloc}{split.path}?{query_text}&X-Amz-Signature={signature}"


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")
