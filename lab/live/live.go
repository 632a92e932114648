// Package live serves the page of an example while the example runs.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// Token is the environment variable with the token for actions. It is not a flag, because every
// user of the machine can read flags.
const Token = "RDMACTOR_INSPECT_TOKEN"

// Usage explains the flag --inspect.
const Usage = "serve the live page at `HOST:PORT`, to everybody who can reach that; its actions are on if $" + Token + " is set"

const (
	path      = "/debug/rdma/"
	headerFor = 5 * time.Second
	idleFor   = time.Minute
	// endFor limits how long a request in flight may take at the end.
	endFor = 2 * time.Second
)

// Server serves a page. The zero value serves none.
type Server struct {
	URL    string // of the page
	server *http.Server
	ended  chan error
}

// Serve serves the page of rt, with its sections, until Close. With addr "" it serves none. The
// page's actions capture the device's traffic, and set level.
func Serve(addr string, rt *rdma.Runtime, device cmid.Driver, level *slog.LevelVar, sections ...inspect.Section) (*Server, error) {
	if addr == "" {
		return &Server{}, nil
	}
	page, err := pageAt(addr, rt, device, level, sections)
	if err != nil {
		return nil, fmt.Errorf("--inspect: %w", err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--inspect: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, page)
	mux.Handle("GET /{$}", http.RedirectHandler(path, http.StatusFound))
	s := &Server{
		URL: "http://" + listener.Addr().String() + path,
		server: &http.Server{
			Handler: mux, ReadHeaderTimeout: headerFor, IdleTimeout: idleFor,
			ErrorLog: slog.NewLogLogger(rt.Logger().Handler(), slog.LevelWarn),
		},
		ended: make(chan error, 1),
	}
	s.server.RegisterOnShutdown(page.Close)
	go func() {
		s.ended <- s.server.Serve(listener)
		close(s.ended)
	}()
	return s, nil
}

// pageAt makes the page that is served at addr. Browsers may request it under the name in addr.
func pageAt(addr string, rt *rdma.Runtime, device cmid.Driver, level *slog.LevelVar, sections []inspect.Section) (*inspect.Page, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cfg := inspect.Config{Path: path, Sections: sections}
	if host != "" {
		cfg.Hosts = []string{strings.ToLower(strings.TrimSuffix(host, "."))}
	}
	if token := os.Getenv(Token); token != "" {
		cfg.Actions = &inspect.Actions{Token: token, Level: level, Capture: captureFunc(device)}
	}
	return inspect.New(rt, cfg)
}

// captureFunc returns the function with which the page captures, or nil: only the embedded device
// can.
func captureFunc(device cmid.Driver) func(io.Writer, inspect.Chosen) (inspect.Capture, error) {
	d, ok := device.(*iwarp.Driver)
	if !ok {
		return nil
	}
	return func(w io.Writer, c inspect.Chosen) (inspect.Capture, error) {
		return d.StartCapture(iwarp.CaptureConfig{
			Writer: w, MaxBytes: c.MaxBytes, Local: c.Local, LocalPort: c.LocalPort, Peer: c.Peer, PeerPort: c.PeerPort,
		})
	}
}

// Close stops the page and disconnects its readers. Further calls do nothing.
func (s *Server) Close() error {
	if s.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), endFor)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // a request is still in flight
		err = s.server.Close()
	}
	if e := <-s.ended; e != nil && !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
