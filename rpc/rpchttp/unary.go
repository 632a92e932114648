package rpchttp

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/rdmactor/rdmactor/rpc"
)

// call makes a unary call.
func (h *Handler) call(ctx context.Context, w http.ResponseWriter, r *http.Request, m *method, f *format) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.cfg.MaxMessage)))
	if err != nil {
		h.fail(w, ended(ctx, err))
		return
	}
	q, err := f.fromHTTP(body, m.desc.Input())
	if err != nil {
		h.fail(w, refused("invalid_argument", "the request: %v", err))
		return
	}
	var header, trailer rpc.Pairs
	request := rpc.Bytes(q)
	reply, err := rpc.Call(ctx, h.client, m.unary, &request, rpc.ReceiveHeader(&header), rpc.ReceiveTrailer(&trailer))
	addHeaders(w, header, "")
	addHeaders(w, trailer, "Trailer-")
	if err != nil {
		h.fail(w, err)
		return
	}
	answer, err := f.toHTTP(*reply, m.desc.Output())
	if err != nil {
		h.fail(w, refused("internal", "the answer: %v", err))
		return
	}
	w.Header().Set("Content-Type", "application/"+f.name)
	_, _ = w.Write(answer) // the client may have gone
}

// addHeaders adds metadata of the answer to the headers, except keys that are HTTP's own.
func addHeaders(w http.ResponseWriter, p rpc.Pairs, prefix string) {
	for k, v := range p.All() {
		if k = http.CanonicalHeaderKey(k); !reserved(k) && !strings.ContainsAny(v, "\r\n\x00") {
			w.Header().Add(prefix+k, v)
		}
	}
}
