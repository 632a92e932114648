// Package fromgrpc has one program twice, for docs/from-grpc.md: an order service with all kinds of
// methods, TLS, several servers, metrics and curl, with package rpc (rdmactor.go) and with grpc-go
// (grpcgo.go). It is compiled and run by its tests.
package fromgrpc

import (
	"context"
	"net/http"
	"time"
)

// serveWeb serves h at addr until ctx ends, then drains. Both programs use it.
func serveWeb(ctx context.Context, addr string, h http.Handler, drain func()) error {
	web := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() {
		drain()
		_ = web.Close()
	})
	defer stop()
	if err := web.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}
