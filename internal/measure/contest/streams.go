package contest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rdmactor/rdmactor/internal/measure"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// listenOn is a listener of the entry's kind, and dialOn dials there; closing is for behind everything else.
func listenOn(e measure.Entry) (l net.Listener, closing func() error, err error) {
	if e.Contestant == "net.Conn" {
		l, err = net.Listen("tcp", Loopback)
		return l, func() error { return nil }, err
	}
	w, err := OpenWorld(e)
	if err != nil {
		return nil, nil, err
	}
	l, err = rdmanet.Listen(w.RT, Loopback)
	return l, w.Close, err
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func dialOn(e measure.Entry) (dial dialFunc, closing func() error, err error) {
	if e.Contestant == "net.Conn" {
		return new(net.Dialer).DialContext, func() error { return nil }, nil
	}
	w, err := OpenWorld(e)
	return rdmanet.NewDialer(w.RT).DialContext, w.Close, err
}

// andThen closes something behind a service.
type andThen struct {
	measure.Service
	closing func() error
}

func (a andThen) Close() error { return errors.Join(a.Service.Close(), a.closing()) }

func serveRDMANet(e measure.Entry) (measure.Service, error) {
	l, closing, err := listenOn(e)
	if err != nil {
		return nil, err
	}
	return andThen{Listen(l, Echo), closing}, nil
}

func dialRDMANet(addr string, e measure.Entry) (Tripper, error) {
	dial, closing, err := dialOn(e)
	if err != nil {
		return nil, err
	}
	c, err := dial(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	calls := connCalls(c)
	calls.CloseFunc = func() error { return errors.Join(c.Close(), closing()) }
	return Serial{calls}, nil
}

// Web is net/http over rdmanet and over net.Conn: GETs of Body bytes.
type Web struct{ Body int }

// webService is net/http's server.
type webService struct {
	*http.Server
	l     net.Listener
	ended chan error
}

// Serve is a Scenario's.
func (web Web) Serve(e measure.Entry) (measure.Service, error) {
	l, closing, err := listenOn(e)
	if err != nil {
		return nil, err
	}
	body := NewPayload(web.Body)
	s := webService{&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body) // a client that goes is no news
	})}, l, make(chan error, 1)}
	go func() { s.ended <- s.Serve(l) }()
	return andThen{s, closing}, nil
}

func (s webService) Addr() string { return s.l.Addr().String() }

func (s webService) Close() error {
	err := s.Server.Close()
	if e := <-s.ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// webClient has a connection for each of many goroutines.
type webClient struct {
	Web
	http    *http.Client
	url     string
	closing func() error
}

// Dial is a Scenario's.
func (web Web) Dial(addr string, e measure.Entry) (measure.Client, error) {
	dial, closing, err := dialOn(e)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{DialContext: dial, MaxConnsPerHost: ManyCallers, MaxIdleConnsPerHost: ManyCallers, DisableCompression: true}
	return webClient{web, &http.Client{Transport: t}, "http://" + addr + "/", closing}, nil
}

func (c webClient) Close() error {
	c.http.CloseIdleConnections()
	return c.closing()
}

func (c webClient) Run(d time.Duration) (measure.Sample, error) {
	return Together(ManyCallers, c.Body, d, c.get)
}

// get is one request.
func (c webClient) get(want, _ []byte) error {
	r, err := c.http.Get(c.url)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", r.Status)
	}
	return Echoed(got, want)
}
