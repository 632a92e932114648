package rpchttp

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/rdmactor/rdmactor/rpc"
)

// Config configures a Handler. Zero fields have their defaults.
type Config struct {
	// MaxMessage is the size of the largest request or item that is read: 4 MiB. The server's own
	// limit (rpc.ServerConfig.MaxMessage) counts as well.
	MaxMessage int
	// Code returns Connect's name for a code of a service (rpc.RegisterCode), such as "not_found".
	// nil, or "": "unknown".
	Code func(rpc.Code) string
}

// Handler is an http.Handler that serves Connect's protocol.
type Handler struct {
	client  *rpc.Client
	cfg     Config
	methods map[string]*method // by path
}

// method is a method of a service. Only the field of its kind is set.
type method struct {
	desc   protoreflect.MethodDescriptor
	unary  rpc.Method[rpc.Bytes, rpc.Bytes]
	server rpc.Stream[rpc.Bytes, rpc.Bytes]
	client rpc.ClientStream[rpc.Bytes, rpc.Bytes]
	bidi   rpc.BidiStream[rpc.Bytes, rpc.Bytes]
}

// New makes a Handler for services by their full names. The program contains their generated code.
// It may serve any number of requests at the same time, also while the client's server is down:
// they fail with "unavailable" then.
func New(client *rpc.Client, cfg Config, services ...protoreflect.FullName) (*Handler, error) {
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = 4 << 20
	}
	h := &Handler{client: client, cfg: cfg, methods: make(map[string]*method)}
	for _, name := range services {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			return nil, fmt.Errorf("rpchttp: service %s: %w", name, err)
		}
		service, ok := d.(protoreflect.ServiceDescriptor)
		if !ok {
			return nil, fmt.Errorf("rpchttp: %s is no service", name)
		}
		for i := range service.Methods().Len() {
			m := methodOf(service.Methods().Get(i))
			h.methods["/"+m.rpcName()] = m
		}
	}
	return h, nil
}

// known has the methods of all Handlers by name: package rpc never removes one.
var known sync.Map

func methodOf(d protoreflect.MethodDescriptor) *method {
	m := &method{desc: d}
	if old, ok := known.Load(m.rpcName()); ok {
		return old.(*method)
	}
	switch name := m.rpcName(); {
	case d.IsStreamingClient() && d.IsStreamingServer():
		m.bidi = rpc.NewBidiStream[rpc.Bytes, rpc.Bytes](name)
	case d.IsStreamingClient():
		m.client = rpc.NewClientStream[rpc.Bytes, rpc.Bytes](name)
	case d.IsStreamingServer():
		m.server = rpc.NewStream[rpc.Bytes, rpc.Bytes](name)
	default:
		m.unary = rpc.NewMethod[rpc.Bytes, rpc.Bytes](name)
	}
	first, _ := known.LoadOrStore(m.rpcName(), m)
	return first.(*method)
}

// rpcName returns the method's name in package rpc: "shop.Orders/Get".
func (m *method) rpcName() string {
	return string(m.desc.Parent().FullName()) + "/" + string(m.desc.Name())
}

// ServeHTTP answers a request to /SERVICE/METHOD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := h.methods[r.URL.Path]
	if m == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	streams := m.desc.IsStreamingClient() || m.desc.IsStreamingServer()
	prefix := "application/"
	if streams {
		prefix += "connect+"
	}
	content, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	format, ok := formats[strings.TrimPrefix(strings.TrimSpace(content), prefix)]
	if !ok || !strings.HasPrefix(content, prefix) {
		w.Header().Set("Accept-Post", prefix+"json, "+prefix+"proto")
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	ctx, cancel, err := callContext(r)
	if err != nil {
		h.writeError(w, err)
		return
	}
	defer cancel()
	defer unblockReads(ctx, w)()
	if streams {
		h.serveStream(ctx, w, r, m, format)
		return
	}
	h.callUnary(ctx, w, r, m, format)
}

// unblockReads ends the reads of a request with ctx: a client that sends nothing is not waited for
// beyond its deadline. stop is called before the handler returns, because w must not be used
// afterwards.
func unblockReads(ctx context.Context, w http.ResponseWriter) (stop func()) {
	done := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = http.NewResponseController(w).SetReadDeadline(past)
	})
	return func() {
		if !unwatch() {
			<-done
		}
	}
}

// callContext returns the context of a call: the request's, with its time-out and its headers.
func callContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	for _, header := range []string{"Content-Encoding", "Connect-Content-Encoding"} {
		if e := r.Header.Get(header); e != "" && e != "identity" {
			return nil, nil, newWireError("unimplemented", "compression %q is not supported", e)
		}
	}
	ctx := r.Context()
	for name, values := range r.Header {
		if isReserved(name) {
			continue
		}
		for _, v := range values {
			ctx = rpc.WithMetadata(ctx, strings.ToLower(name), v)
		}
	}
	text := r.Header.Get("Connect-Timeout-Ms")
	if text == "" {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ms, err := strconv.ParseUint(text, 10, 64)
	if err != nil || len(text) > 10 {
		return nil, nil, newWireError("invalid_argument", "Connect-Timeout-Ms is %q: up to ten digits", text)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	return ctx, cancel, nil
}

// isReserved reports whether a header is HTTP's, a browser's or Connect's own, and no metadata.
func isReserved(name string) bool {
	for _, prefix := range []string{"Accept", "Connect-", "Content-", "Sec-", "If-", "Proxy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "Connection", "Cookie", "Host", "Keep-Alive", "Origin", "Priority", "Referer", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "User-Agent", "Dnt", "Cache-Control", "Pragma":
		return true
	}
	return false
}
