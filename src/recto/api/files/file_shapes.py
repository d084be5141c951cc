"""What attachments and datasets look like, for the description of the API. Rows are written elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from recto.api.shapes import TIME
from recto.conversation.json import Json

ATTACHMENT, DATASET = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e12", "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e13"
URL = (
    f"https://recto.example/api/v1/agent/files/{ATTACHMENT}/report.pdf"
    "?signature=1778846400.k1.kq3vT0m8Yx5Zr1Wc7Nf2Bd9LpQaJhUeS"
)
ATTACHMENT_EXAMPLE: Json = {
    "id": ATTACHMENT,
    "name": "report.pdf",
    "type": "document",
    "mimeType": "application/pdf",
    "size": 48213,
    "url": URL,
    "expiresAt": TIME,
}
REFUSED_EXAMPLE: Json = {
    "name": "empty.txt",
    "error": "it is empty; send a file with something in it",
    "code": "empty",
}
UPLOADED_EXAMPLE: Json = {"attachments": [ATTACHMENT_EXAMPLE, REFUSED_EXAMPLE]}
ATTACHMENTS_EXAMPLE: Json = {"attachments": [ATTACHMENT_EXAMPLE], "next": None}
GONE_EXAMPLE: Json = {"id": ATTACHMENT}
DATASET_BODY: Json = {"name": "Price lists", "description": "All of 2026", "sharedWith": ["bob"]}
DATASET_EXAMPLE: Json = {
    "id": DATASET,
    "name": "Price lists",
    "description": "All of 2026",
    "owner": "alice",
    "sharedWith": ["bob"],
    "created": TIME,
    "updated": TIME,
    "mine": True,
}
DATASETS_EXAMPLE: Json = {"datasets": [DATASET_EXAMPLE], "next": None}

DatasetName = Annotated[str, Field(min_length=1, max_length=200)]
Description = Annotated[str, Field(max_length=2_000)]
SharedWith = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=256)]],
    Field(max_length=1_000, description="Users by name; `*` is everybody."),
]


class AttachmentShape(BaseModel):
    """A file that was uploaded. Whoever has its `url` may read it until `expiresAt`."""

    id: str
    name: str
    type: Literal["document", "image", "audio", "video"]
    mime_type: str = Field(alias="mimeType")
    size: int
    url: str
    expires_at: str = Field(alias="expiresAt")


class RefusedFileShape(BaseModel):
    """A file that was not taken, and why."""

    name: str
    error: str
    code: str


class UploadForm(BaseModel):
    """Files, and before them the agent they are for. Every part with a filename is a file, whatever its name."""

    agent: str | None = None
    file: list[Annotated[str, Field(json_schema_extra={"format": "binary"})]]


class UploadedShape(BaseModel):
    """What became of each file, in the order they came."""

    attachments: list[AttachmentShape | RefusedFileShape]


class AttachmentsShape(BaseModel):
    """Attachments, newest first. `next` is the cursor of the page that follows."""

    attachments: list[AttachmentShape]
    next: str | None


class GoneShape(BaseModel):
    """What was deleted."""

    id: str


class DatasetBody(BaseModel):
    """A new dataset."""

    name: DatasetName
    description: Description | None = ""
    shared_with: SharedWith | None = Field(default=[], alias="sharedWith")


class DatasetChangeBody(BaseModel):
    """What is to be different; what is left out stays."""

    name: DatasetName | None = None
    description: Description | None = None
    shared_with: SharedWith | None = Field(default=None, alias="sharedWith")


class DatasetShape(BaseModel):
    """A dataset. Only its owner is told whom it is shared with."""

    id: str
    name: str
    description: str
    owner: str
    shared_with: list[str] | None = Field(default=None, alias="sharedWith")
    created: str
    updated: str
    mine: bool


class DatasetsShape(BaseModel):
    """Datasets you may use, newest first. `next` is the cursor of the page that follows."""

    datasets: list[DatasetShape]
    next: str | None
