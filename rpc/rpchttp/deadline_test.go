package rpchttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc"
)

// lateWriter notices a use of a ResponseWriter after its handler has returned. That of HTTP/2
// panics then, which ends the program.
type lateWriter struct {
	*httptest.ResponseRecorder
	returned atomic.Bool
	late     chan bool
}

func (w *lateWriter) SetReadDeadline(time.Time) error {
	synctest.Wait() // the handler goes on until it returns, or waits for this function
	w.late <- w.returned.Load()
	return nil
}

// A call whose deadline passes uses its ResponseWriter no longer when its handler has returned.
func TestDeadlineDuringReturn(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(world *actortest.World) {
		// there is no server
		c := rpc.NewClient(world.Runtime(), "10.0.0.9:1", rpc.ClientConfig{WaitForReady: true})
		h, err := New(c, Config{}, "test.Orders")
		if err != nil {
			world.T().Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/test.Orders/Get", strings.NewReader(`"x"`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Connect-Timeout-Ms", "100")
		w := &lateWriter{ResponseRecorder: httptest.NewRecorder(), late: make(chan bool, 1)}
		h.ServeHTTP(w, r)
		w.returned.Store(true)
		if <-w.late {
			world.T().Error("the ResponseWriter was used after the handler had returned")
		}
		if w.Code != http.StatusGatewayTimeout {
			world.T().Errorf("the status is %d", w.Code)
		}
		c.Close()
	})
}
