package rpchttp

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/rdmactor/rdmactor/rpc"
)

// callUnary makes a unary call.
func (h *Handler) callUnary(ctx context.Context, w http.ResponseWriter, r *http.Request, m *method, f *format) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.cfg.MaxMessage)))
	if err != nil {
		h.writeError(w, requestError(ctx, err))
		return
	}
	q, err := f.fromHTTP(body, m.desc.Input())
	if err != nil {
		h.writeError(w, newWireError("invalid_argument", "the request: %v", err))
		return
	}
	var header, trailer rpc.Pairs
	request := rpc.Bytes(q)
	reply, err := rpc.Call(ctx, h.client, m.unary, &request, rpc.ReceiveHeader(&header), rpc.ReceiveTrailer(&trailer))
	addHeaders(w, header, "")
	addHeaders(w, trailer, "Trailer-")
	if err != nil {
		h.writeError(w, err)
		return
	}
	answer, err := f.toHTTP(*reply, m.desc.Output())
	if err != nil {
		h.writeError(w, newWireError("internal", "the answer: %v", err))
		return
	}
	w.Header().Set("Content-Type", "application/"+f.name)
	_, _ = w.Write(answer) // the client may have gone
}

// addHeaders adds metadata of the answer to the headers, except keys that are HTTP's own.
func addHeaders(w http.ResponseWriter, p rpc.Pairs, prefix string) {
	for k, v := range p.All() {
		if k = http.CanonicalHeaderKey(k); !isReserved(k) && !strings.ContainsAny(v, "\r\n\x00") {
			w.Header().Add(prefix+k, v)
		}
	}
}
