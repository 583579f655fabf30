"""Made by clients/python/write-types.ts from the OpenAPI document. Do not edit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

Number = Union[int, Decimal]


class Actor(TypedDict):
    actorId: str
    names: list[ActorName]
    changes: int
    last: str


class ActorName(TypedDict):
    name: str
    first: str
    last: str


class AlertThreshold(TypedDict):
    count: int
    minutes: int


class ChangeEntry(TypedDict):
    at: str
    type: Literal["create", "update", "delete"]
    entity: str
    entityId: str
    name: NotRequired[str]
    paths: dict[str, PathValueChange]
    schemaVersion: NotRequired[str]
    actor: NotRequired[str]
    actorId: NotRequired[str]
    onBehalfOf: NotRequired[Person]
    correlationId: NotRequired[str]
    related: list[RelatedItem]
    context: NotRequired[dict[str, Any]]
    recordedBy: NotRequired[RecordedBy]
    erased: NotRequired[list[str]]
    ref: NotRequired[str]
    cut: NotRequired[list[str]]


class ChangeFacets(TypedDict):
    field: str
    totalElements: int
    values: list[FacetValue]
    others: int


ChangeHistogram = TypedDict(
    "ChangeHistogram",
    {
        "from": "str",
        "to": "str",
        "interval": "HistogramInterval",
        "totalElements": "int",
        "buckets": "list[HistogramBucket]",
        "after": "int",
    },
)


class ChangeNames(TypedDict):
    field: Literal["entity", "actor", "related.entity", "path"]
    values: list[str]


class ChangeRecorder(TypedDict):
    way: Literal["service", "import", "recorder", "capture", "relay"]
    by: NotRequired[str]
    lastRecordedAt: str


class ChangeRecorders(TypedDict):
    recorders: list[ChangeRecorder]
    since: NotRequired[str]


ChangedConfiguration: TypeAlias = "Union[ChangedConfigurationSecured, ChangedConfigurationPlain]"


class ChangedConfigurationPlain(TypedDict):
    key: NotRequired[str]
    version: NotRequired[int]
    description: NotRequired[str]
    restricted: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    readOnly: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    schemaUrl: NotRequired[Union[Literal[None, ""], list[Any], dict[str, Any]]]
    value: Any
    secured: NotRequired[Literal[False]]


class ChangedConfigurationSecured(TypedDict):
    key: NotRequired[str]
    version: NotRequired[int]
    description: NotRequired[str]
    restricted: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    readOnly: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    schemaUrl: NotRequired[Union[Literal[None, ""], list[Any], dict[str, Any]]]
    value: str
    secured: Literal[True]


class Configuration(TypedDict):
    key: str
    value: Any
    version: int
    description: NotRequired[str]
    secured: bool


CustomEntityType: TypeAlias = dict[str, Any]


class CustomEntityTypeInput(TypedDict):
    id: NotRequired[str]
    name: dict[str, str]
    jsonSchema: NotRequired[Union[dict[str, Any], bool]]
    metadata: NotRequired[MetadataInput]
    schemas: NotRequired[Union[Literal[None, ""], list[Any], dict[str, Any]]]


CustomInstance: TypeAlias = dict[str, Any]


class DeliveryAttemptItem(TypedDict):
    id: str
    at: NotRequired[str]
    kind: NotRequired[Literal["live", "replay", "test"]]
    first: NotRequired[int]
    last: NotRequired[int]
    outcome: NotRequired[Literal["delivered", "failed", "refused", "suspended"]]
    status: NotRequired[int]
    duration: NotRequired[int]
    reason: NotRequired[Literal["no_connection", "tls", "timeout", "closed", "upgrade"]]
    error: NotRequired[str]
    answer: NotRequired[str]


class DeliveryTest(TypedDict):
    outcome: Literal["delivered", "failed", "refused", "suspended"]
    status: NotRequired[int]
    duration: NotRequired[int]
    reason: NotRequired[Literal["no_connection", "tls", "timeout", "closed", "upgrade"]]
    error: NotRequired[str]
    answer: NotRequired[str]
    request: NotRequired[SentRequest]


class DocumentAtMoment(TypedDict):
    entity: str
    entityId: str
    at: str
    exists: bool
    complete: bool
    name: NotRequired[str]
    document: NotRequired[Any]
    changes: int
    lastChange: NotRequired[LastChange]


class DocumentNames(TypedDict):
    field: Literal["document"]
    values: list[NamedDocument]


class EmailTarget(TypedDict):
    type: Literal["email"]
    to: Union[str, list[str]]
    threshold: NotRequired[AlertThreshold]
    values: NotRequired[bool]


class FacetValue(TypedDict):
    value: str
    count: int
    name: NotRequired[str]


class FeedChange(TypedDict):
    at: str
    type: Literal["create", "update", "delete"]
    entity: str
    entityId: str
    name: NotRequired[str]
    paths: dict[str, PathValueChange]
    schemaVersion: NotRequired[str]
    actor: str
    actorId: NotRequired[str]
    onBehalfOf: NotRequired[Person]
    correlationId: NotRequired[str]
    related: list[RelatedItem]
    context: NotRequired[dict[str, Any]]
    recordedBy: NotRequired[RecordedBy]
    erased: NotRequired[list[str]]
    ref: str
    cut: NotRequired[list[str]]
    position: int
    cursor: str


class HistogramBucket(TypedDict):
    at: str
    count: int
    create: int
    update: int
    delete: int


class HistogramInterval(TypedDict):
    unit: Literal["second", "minute", "hour", "day"]
    count: int


class HttpTarget(TypedDict):
    type: Literal["http"]
    url: str
    headers: NotRequired[TargetHeaders]
    encoding: NotRequired[Literal["ndjson", "json"]]
    gzip: NotRequired[bool]
    format: NotRequired[Literal["annals", "cloudevents"]]
    maxChanges: NotRequired[int]
    maxBytes: NotRequired[int]
    maxSeconds: NotRequired[int]


class Job(TypedDict):
    id: str
    type: Literal["AGENT_CHAT", "EXPORT"]
    status: Literal["in_progress", "success", "failure", "skipped"]
    agentId: NotRequired[str]
    sessionId: NotRequired[str]
    requestId: NotRequired[str]
    request: NotRequired[str]
    message: NotRequired[str]
    response: NotRequired[Any]
    metadata: JobMetadata


class JobError(TypedDict):
    type: Literal[
        "validation_violation",
        "price_unknown",
        "insufficient_permissions",
        "quota_exceeded",
        "resource_not_found",
        "method_not_allowed",
        "conflict_resource",
        "cursor_invalid",
        "payload_too_large",
        "unsupported_media_type",
        "misdirected_request",
        "change_rejected",
        "rate_limit_exceeded",
        "request_header_fields_too_large",
        "internal_service_error",
        "provider_error",
        "service_unavailable",
        "provider_timeout",
    ]
    message: NotRequired[str]


class JobMetadata(TypedDict):
    version: int
    createdAt: str
    modifiedAt: str
    clientId: NotRequired[str]
    q: NotRequired[str]
    format: NotRequired[Literal["NDJSON", "CSV"]]
    bom: NotRequired[bool]
    rows: NotRequired[Literal["change", "field"]]
    context: NotRequired[bool]
    searchesContext: NotRequired[bool]
    proof: NotRequired[bool]
    entries: NotRequired[int]
    bytes: NotRequired[int]
    error: NotRequired[JobError]
    guarded: NotRequired[list[str]]


JsonPatchOperation: TypeAlias = "Union[ValueOperation, RemoveOperation, MoveOperation]"


class LastChange(TypedDict):
    at: str
    type: Literal["create", "update", "delete"]
    actor: NotRequired[str]


class LastDelivery(TypedDict):
    at: str
    status: NotRequired[int]
    duration: NotRequired[int]


class LastDeliveryError(TypedDict):
    at: str
    status: NotRequired[int]
    message: str


class MetadataInput(TypedDict):
    version: NotRequired[int]
    createdAt: NotRequired[str]
    modifiedAt: NotRequired[str]


MoveOperation = TypedDict(
    "MoveOperation",
    {
        "from": "str",
        "value": "NotRequired[Any]",
        "op": 'Literal["move", "copy"]',
        "path": "str",
    },
)


class NamedDocument(TypedDict):
    entity: str
    entityId: str
    name: NotRequired[str]
    at: str


NewConfiguration: TypeAlias = "Union[NewConfigurationSecured, NewConfigurationPlain]"


class NewConfigurationPlain(TypedDict):
    key: str
    version: NotRequired[int]
    description: NotRequired[str]
    restricted: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    readOnly: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    schemaUrl: NotRequired[Union[Literal[None, ""], list[Any], dict[str, Any]]]
    value: Any
    secured: NotRequired[Literal[False]]


class NewConfigurationSecured(TypedDict):
    key: str
    version: NotRequired[int]
    description: NotRequired[str]
    restricted: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    readOnly: NotRequired[Union[Literal[None, "", False], list[Any], dict[str, Any]]]
    schemaUrl: NotRequired[Union[Literal[None, ""], list[Any], dict[str, Any]]]
    value: str
    secured: Literal[True]


class NewExport(TypedDict):
    type: Literal["EXPORT"]
    q: NotRequired[str]
    format: Literal["NDJSON", "CSV"]
    bom: NotRequired[bool]
    rows: NotRequired[Literal["change", "field"]]
    context: NotRequired[bool]
    proof: NotRequired[bool]


class NewViewerToken(TypedDict):
    q: str
    subject: str
    expiresIn: NotRequired[int]
    hide: NotRequired[list[str]]
    actors: NotRequired[Literal[False, "names", True, "all"]]
    export: NotRequired[bool]


class PathValueChange(TypedDict):
    before: NotRequired[Any]
    after: NotRequired[Any]


class Person(TypedDict):
    name: NotRequired[str]
    id: NotRequired[str]


class RecordedBy(TypedDict):
    way: Literal["service", "import", "recorder", "capture", "relay"]
    by: NotRequired[str]
    iss: NotRequired[str]
    sub: NotRequired[str]


class RecordedChange(TypedDict):
    id: str
    op: Literal["insert", "create", "update", "replace", "delete"]
    entity: str
    entityId: str
    at: str
    name: NotRequired[str]
    actor: NotRequired[str]
    actorId: NotRequired[str]
    onBehalfOf: NotRequired[RecordedOnBehalfOf]
    correlationId: NotRequired[str]
    schemaVersion: NotRequired[str]
    related: NotRequired[list[RecordedRelatedItem]]
    context: NotRequired[dict[str, Any]]
    before: NotRequired[Any]
    after: NotRequired[Any]
    masked: NotRequired[list[str]]


class RecordedCounts(TypedDict):
    read: int
    recorded: int
    unchanged: int
    duplicate: int
    expired: int
    ignored: int
    rejected: list[RejectedChange]


class RecordedOnBehalfOf(TypedDict):
    name: NotRequired[str]
    id: NotRequired[str]


class RecordedRelatedItem(TypedDict):
    entity: str
    entityId: str


class RejectedChange(TypedDict):
    index: int
    reason: str


class RelatedItem(TypedDict):
    entity: str
    entityId: str


RemoveOperation = TypedDict(
    "RemoveOperation",
    {
        "from": "NotRequired[str]",
        "value": "NotRequired[Any]",
        "op": 'Literal["remove"]',
        "path": "str",
    },
)


ReplayInput = TypedDict(
    "ReplayInput",
    {
        "from": "NotRequired[str]",
        "to": "NotRequired[str]",
        "parked": "NotRequired[Literal[True]]",
    },
)


class ReplayUnderWay(TypedDict):
    left: int


class RotatedKey(TypedDict):
    secret: NotRequired[str]
    publicKey: NotRequired[str]


class S3Target(TypedDict):
    type: Literal["s3"]
    endpoint: NotRequired[str]
    region: str
    bucket: str
    prefix: NotRequired[str]
    accessKeyId: str
    secretAccessKey: str
    format: NotRequired[Literal["annals", "cloudevents"]]
    maxChanges: NotRequired[int]
    maxBytes: NotRequired[int]
    maxSeconds: NotRequired[int]


class SavedView(TypedDict):
    id: str
    name: str
    q: str
    range: str
    columns: NotRequired[
        list[
            Literal[
                "at",
                "type",
                "entity",
                "entityId",
                "name",
                "actor",
                "paths",
                "related",
                "schemaVersion",
            ]
        ]
    ]
    position: Number
    metadata: SavedViewMetadata


class SavedViewInput(TypedDict):
    id: NotRequired[str]
    name: str
    q: str
    range: NotRequired[str]
    columns: NotRequired[
        list[
            Literal[
                "at",
                "type",
                "entity",
                "entityId",
                "name",
                "actor",
                "paths",
                "related",
                "schemaVersion",
            ]
        ]
    ]
    position: NotRequired[Number]
    metadata: NotRequired[MetadataInput]


class SavedViewMetadata(TypedDict):
    version: int
    createdAt: str
    modifiedAt: str


class SentRequest(TypedDict):
    method: str
    url: str
    headers: dict[str, str]
    body: str


class SplunkTarget(TypedDict):
    type: Literal["splunk"]
    url: str
    token: str
    index: NotRequired[str]
    sourcetype: NotRequired[str]
    format: NotRequired[Literal["annals", "cloudevents"]]
    maxChanges: NotRequired[int]
    maxBytes: NotRequired[int]
    maxSeconds: NotRequired[int]


Subscription = TypedDict(
    "Subscription",
    {
        "id": "str",
        "name": "str",
        "enabled": "bool",
        "q": "str",
        "from": "str",
        "maxAge": "NotRequired[str]",
        "hide": "NotRequired[list[str]]",
        "actors": 'NotRequired[Literal[False, True, "all"]]',
        "target": "Union[WebhookTarget, HttpTarget, S3Target, SplunkTarget, EmailTarget]",
        "state": 'Literal["active", "retrying", "paused", "suspended"]',
        "reason": (
            'NotRequired[Literal["client", '
            '"disabled", '
            '"maker", '
            '"backup", '
            '"restored", '
            '"gone", '
            '"failures"]]'
        ),
        "maker": "str",
        "makerName": "NotRequired[str]",
        "cursor": "str",
        "pending": "int",
        "parked": "int",
        "matched": "int",
        "delivered": "int",
        "skipped": "int",
        "expired": "int",
        "dropped": "int",
        "replay": "NotRequired[ReplayUnderWay]",
        "lastDelivery": "NotRequired[LastDelivery]",
        "lastError": "NotRequired[LastDeliveryError]",
        "metadata": "SubscriptionMetadata",
    },
)


class SubscriptionCreated(TypedDict):
    id: str
    secret: NotRequired[str]
    publicKey: NotRequired[str]


SubscriptionInput = TypedDict(
    "SubscriptionInput",
    {
        "id": "NotRequired[str]",
        "name": "str",
        "enabled": "NotRequired[bool]",
        "q": "NotRequired[str]",
        "from": "NotRequired[str]",
        "maxAge": "NotRequired[str]",
        "hide": "NotRequired[list[str]]",
        "actors": 'NotRequired[Literal[False, "names", True, "all"]]',
        "target": "Union[WebhookTarget, HttpTarget, S3Target, SplunkTarget, EmailTarget]",
        "state": "NotRequired[Any]",
        "reason": "NotRequired[Any]",
        "maker": "NotRequired[Any]",
        "makerName": "NotRequired[Any]",
        "cursor": "NotRequired[Any]",
        "pending": "NotRequired[Any]",
        "parked": "NotRequired[Any]",
        "matched": "NotRequired[Any]",
        "delivered": "NotRequired[Any]",
        "skipped": "NotRequired[Any]",
        "expired": "NotRequired[Any]",
        "dropped": "NotRequired[Any]",
        "replay": "NotRequired[Any]",
        "lastDelivery": "NotRequired[Any]",
        "lastError": "NotRequired[Any]",
        "metadata": "NotRequired[MetadataInput]",
    },
)


class SubscriptionMetadata(TypedDict):
    version: int
    createdAt: str
    modifiedAt: str


class SubscriptionPreview(TypedDict):
    items: list[Any]
    cursor: str
    caughtUp: bool


TargetHeaders: TypeAlias = dict[str, str]


ValueOperation = TypedDict(
    "ValueOperation",
    {
        "from": "NotRequired[str]",
        "value": "Any",
        "op": 'Literal["add", "replace", "test"]',
        "path": "str",
    },
)


class ViewerToken(TypedDict):
    token: str
    expiresIn: int


class WebhookTarget(TypedDict):
    type: Literal["webhook"]
    url: str
    headers: NotRequired[TargetHeaders]
    signing: NotRequired[Literal["hmac", "ed25519"]]
    concurrency: NotRequired[int]
    publicKey: NotRequired[str]
