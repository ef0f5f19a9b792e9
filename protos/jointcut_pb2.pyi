from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Description(_message.Message):
    __slots__ = ("name", "version", "time_ms", "protocols")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    time_ms: int
    protocols: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., time_ms: _Optional[int] = ..., protocols: _Optional[str] = ...) -> None: ...

class StillHere(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Position(_message.Message):
    __slots__ = ("ahead",)
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    ahead: int
    def __init__(self, ahead: _Optional[int] = ...) -> None: ...

class Proposal(_message.Message):
    __slots__ = ("bundle", "ask")
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    bundle: Piece
    ask: bool
    def __init__(self, bundle: _Optional[_Union[Piece, _Mapping]] = ..., ask: _Optional[bool] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("state", "reason")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[Answer.State]
        WAITING: _ClassVar[Answer.State]
        APPROVED: _ClassVar[Answer.State]
        DENIED: _ClassVar[Answer.State]
    UNKNOWN: Answer.State
    WAITING: Answer.State
    APPROVED: Answer.State
    DENIED: Answer.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    state: Answer.State
    reason: str
    def __init__(self, state: _Optional[_Union[Answer.State, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("submit", "start", "release", "cancel", "stored", "read")
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    submit: Submit
    start: Start
    release: Piece
    cancel: Cancel
    stored: Stored
    read: Read
    def __init__(self, submit: _Optional[_Union[Submit, _Mapping]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., release: _Optional[_Union[Piece, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., stored: _Optional[_Union[Stored, _Mapping]] = ..., read: _Optional[_Union[Read, _Mapping]] = ...) -> None: ...

class Submit(_message.Message):
    __slots__ = ("run", "bundle")
    RUN_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    run: bytes
    bundle: Piece
    def __init__(self, run: _Optional[bytes] = ..., bundle: _Optional[_Union[Piece, _Mapping]] = ...) -> None: ...

class Read(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Start(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    def __init__(self, key: _Optional[bytes] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("problem",)
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    problem: str
    def __init__(self, problem: _Optional[str] = ...) -> None: ...

class Stored(_message.Message):
    __slots__ = ("release",)
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    release: bytes
    def __init__(self, release: _Optional[bytes] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("name", "content", "last")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    name: str
    content: bytes
    last: bool
    def __init__(self, name: _Optional[str] = ..., content: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("admitted", "progress", "finished", "result", "delivered", "failed", "allowed")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    admitted: Admitted
    progress: Progress
    finished: Finished
    result: Piece
    delivered: Delivered
    failed: Failed
    allowed: Allowed
    def __init__(self, admitted: _Optional[_Union[Admitted, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ..., result: _Optional[_Union[Piece, _Mapping]] = ..., delivered: _Optional[_Union[Delivered, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., allowed: _Optional[_Union[Allowed, _Mapping]] = ...) -> None: ...

class Allowed(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: bytes
    def __init__(self, job: _Optional[bytes] = ...) -> None: ...

class Admitted(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: bytes
    def __init__(self, job: _Optional[bytes] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("phase", "iteration", "column", "applied")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    phase: str
    iteration: int
    column: str
    applied: bool
    def __init__(self, phase: _Optional[str] = ..., iteration: _Optional[int] = ..., column: _Optional[str] = ..., applied: _Optional[bool] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("result", "summary")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    summary: str
    def __init__(self, result: _Optional[bytes] = ..., summary: _Optional[str] = ...) -> None: ...

class Delivered(_message.Message):
    __slots__ = ("release",)
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    release: bytes
    def __init__(self, release: _Optional[bytes] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("problem",)
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    problem: str
    def __init__(self, problem: _Optional[str] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("job", "run", "sender", "recipient", "sequence", "step", "payload", "last")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    job: bytes
    run: bytes
    sender: str
    recipient: str
    sequence: int
    step: str
    payload: bytes
    last: bool
    def __init__(self, job: _Optional[bytes] = ..., run: _Optional[bytes] = ..., sender: _Optional[str] = ..., recipient: _Optional[str] = ..., sequence: _Optional[int] = ..., step: _Optional[str] = ..., payload: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...
