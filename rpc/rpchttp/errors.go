package rpchttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/rdmactor/rdmactor/rpc"
)

// wireError is an error as Connect writes it.
type wireError struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

func (e *wireError) Error() string { return e.Code + ": " + e.Message }

func newWireError(code, format string, args ...any) *wireError {
	return &wireError{code, fmt.Sprintf(format, args...)}
}

// codes are Connect's names of package rpc's codes (docs/from-grpc.md).
var codes = map[rpc.Code]string{ //nolint:exhaustive // rpc.FirstCode is a service's
	rpc.CodeUnknown: "unknown", rpc.CodeCanceled: "canceled", rpc.CodeDeadline: "deadline_exceeded", rpc.CodeInternal: "internal",
	rpc.CodeUnknownMethod: "unimplemented", rpc.CodeBadMessage: "invalid_argument", rpc.CodeTooLarge: "resource_exhausted",
	rpc.CodeOverloaded: "unavailable", rpc.CodeDraining: "unavailable", rpc.CodeUnavailable: "unavailable", rpc.CodeClosed: "unavailable",
	rpc.CodeForeign: "internal", rpc.CodeVersion: "internal",
}

// statuses are the HTTP statuses of Connect's codes.
var statuses = map[string]int{
	"canceled": 499, "unknown": 500, "invalid_argument": 400, "deadline_exceeded": 504, "not_found": 404, "already_exists": 409,
	"permission_denied": 403, "resource_exhausted": 429, "failed_precondition": 400, "aborted": 409, "out_of_range": 400,
	"unimplemented": 501, "internal": 500, "unavailable": 503, "data_loss": 500, "unauthenticated": 401,
}

// wireErrorOf returns the error that is sent for err. The message is that of the handler; the
// reasons of the connection to the server stay here.
func (h *Handler) wireErrorOf(err error) *wireError {
	if e, ok := errors.AsType[*wireError](err); ok {
		return e
	}
	if errors.As(err, new(*http.MaxBytesError)) {
		return newWireError("resource_exhausted", "the message has more than %d bytes", h.cfg.MaxMessage)
	}
	e, ok := errors.AsType[*rpc.Error](err)
	if !ok {
		return &wireError{Code: "unknown", Message: err.Error()}
	}
	name := codes[e.Code]
	if name == "" && h.cfg.Code != nil {
		name = h.cfg.Code(e.Code)
	}
	if statuses[name] == 0 {
		name = "unknown"
	}
	return &wireError{name, e.Message}
}

// requestError returns the error of a call whose request could not be read: the end of ctx if that
// is why.
func requestError(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &wireError{Code: "deadline_exceeded"}
	}
	return &wireError{Code: "canceled"}
}

// writeError answers a unary call with an error.
func (h *Handler) writeError(w http.ResponseWriter, err error) {
	e := h.wireErrorOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statuses[e.Code])
	_ = json.NewEncoder(w).Encode(e) // the client may have gone
}
