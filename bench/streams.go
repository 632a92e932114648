package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmactor/rdmactor/rdmanet"
)

// listenOn is a listener of the entry's kind, and dialOn dials there; closing is for behind everything else.
func listenOn(e entry) (l net.Listener, closing func() error, err error) {
	if e.contestant == "net.Conn" {
		l, err = net.Listen("tcp", loopback)
		return l, func() error { return nil }, err
	}
	w, err := openWorld(e)
	if err != nil {
		return nil, nil, err
	}
	l, err = rdmanet.Listen(w.rt, loopback)
	return l, w.Close, err
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func dialOn(e entry) (dial dialFunc, closing func() error, err error) {
	if e.contestant == "net.Conn" {
		return new(net.Dialer).DialContext, func() error { return nil }, nil
	}
	w, err := openWorld(e)
	return rdmanet.NewDialer(w.rt).DialContext, w.Close, err
}

// andThen closes something behind a service.
type andThen struct {
	service
	closing func() error
}

func (a andThen) Close() error { return errors.Join(a.service.Close(), a.closing()) }

func serveRDMANet(e entry) (service, error) {
	l, closing, err := listenOn(e)
	if err != nil {
		return nil, err
	}
	return andThen{listen(l, echoConn), closing}, nil
}

func dialRDMANet(addr string, e entry) (tripper, error) {
	dial, closing, err := dialOn(e)
	if err != nil {
		return nil, err
	}
	c, err := dial(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	t := connTrips(c).(serial).tripper.(blocking)
	end := t.close
	t.close = func() error { return errors.Join(end(), closing()) }
	return serial{t}, nil
}

// webService is net/http's server.
type webService struct {
	*http.Server
	l     net.Listener
	ended chan error
}

func serveHTTP(e entry) (service, error) {
	l, closing, err := listenOn(e)
	if err != nil {
		return nil, err
	}
	body := newPayload(payloadSize)
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
	http    *http.Client
	url     string
	closing func() error
}

func dialHTTP(addr string, e entry) (client, error) {
	dial, closing, err := dialOn(e)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{DialContext: dial, MaxConnsPerHost: manyCallers, MaxIdleConnsPerHost: manyCallers, DisableCompression: true}
	return webClient{&http.Client{Transport: t}, "http://" + addr + "/", closing}, nil
}

func (c webClient) Close() error {
	c.http.CloseIdleConnections()
	return c.closing()
}

func (c webClient) Run(d time.Duration) (sample, error) { return together(manyCallers, d, c.get) }

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
	return echoed(got, want)
}

// together has n goroutines call until d has passed.
func together(n int, d time.Duration, call func(payload, room []byte) error) (sample, error) {
	var all sync.WaitGroup
	counts, errs := make([]int, n), make([]error, n)
	hists := make([]*hdrhistogram.Histogram, n)
	begun := time.Now()
	for i := range n {
		hists[i] = newHistogram()
		all.Go(func() {
			counts[i], errs[i] = blocking{call: call}.Trips(newPayload(payloadSize), d, hists[i])
		})
	}
	all.Wait()
	took, sum := time.Since(begun), 0
	for i := range n {
		sum += counts[i]
		if i > 0 {
			hists[0].Merge(hists[i])
		}
	}
	return sample{N: sum, Seconds: took.Seconds(), Bytes: sum * payloadSize, Times: percentiles(hists[0])}, errors.Join(errs...)
}
