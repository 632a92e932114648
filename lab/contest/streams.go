package contest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// listenOn makes a listener of the entry's kind, and dialOn returns a function that dials it. The
// caller must call closing last.
func listenOn(e measure.Entry) (l net.Listener, closing func() error, err error) {
	if e.Contestant == "net.Conn" {
		l, err = net.Listen("tcp", Loopback)
		return l, func() error { return nil }, err
	}
	w, err := OpenWorld(e, rdma.Config{})
	if err != nil {
		return nil, nil, err
	}
	l, err = rdmanet.Listen(context.Background(), w.RT, Loopback)
	return l, w.Close, err
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func dialOn(e measure.Entry) (dial dialFunc, closing func() error, err error) {
	if e.Contestant == "net.Conn" {
		return new(net.Dialer).DialContext, func() error { return nil }, nil
	}
	w, err := OpenWorld(e, rdma.Config{})
	return rdmanet.NewDialer(w.RT).DialContext, w.Close, err
}

func serveRDMANet(e measure.Entry) (measure.Service, error) {
	l, closing, err := listenOn(e)
	if err != nil {
		return measure.Service{}, err
	}
	s := Listen(l, Echo)
	return measure.Service{Addr: s.Addr, Close: func() error { return errors.Join(s.Close(), closing()) }}, nil
}

func dialRDMANet(addr string, e measure.Entry) (Calls, error) {
	dial, closing, err := dialOn(e)
	if err != nil {
		return Calls{}, err
	}
	c, err := dial(context.Background(), "tcp", addr)
	if err != nil {
		return Calls{}, err
	}
	calls := connCalls(c)
	calls.Close = func() error { return errors.Join(c.Close(), closing()) }
	return calls, nil
}

// Web measures net/http over rdmanet and over net.Conn, with GETs of Body bytes.
type Web struct{ Body int }

// Serve is for Scenario.Serve.
func (web Web) Serve(e measure.Entry) (measure.Service, error) {
	l, closing, err := listenOn(e)
	if err != nil {
		return measure.Service{}, err
	}
	body := NewPayload(web.Body)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body) // fails if the client has gone
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return measure.Service{Addr: l.Addr().String(), Close: func() error {
		err := s.Close()
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return errors.Join(err, closing())
	}}, nil
}

// Dial is for Scenario.Dial.
func (web Web) Dial(addr string, e measure.Entry) (measure.Client, error) {
	dial, closing, err := dialOn(e)
	if err != nil {
		return measure.Client{}, err
	}
	t := &http.Transport{DialContext: dial, MaxConnsPerHost: ManyCallers, MaxIdleConnsPerHost: ManyCallers, DisableCompression: true}
	c := &http.Client{Transport: t}
	call := func(int, []byte, []byte) ([]byte, error) { return getBody(c, "http://"+addr+"/") }
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		return Together(ManyCallers, web.Body, d, true, call)
	}, Close: func() error {
		c.CloseIdleConnections()
		return closing()
	}}, nil
}

// getBody makes one request and returns the body.
func getBody(c *http.Client, url string) ([]byte, error) {
	r, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server says %s", r.Status)
	}
	return got, errors.Join(err, r.Body.Close())
}
