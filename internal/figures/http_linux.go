package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/rdmanet"
)

const (
	httpConns  = 64
	httpBody   = 512
	httpWarmUp = 5000
	httpCount  = 40_000
	httpRounds = 7
)

// httpResult is what one side reports. Only clients know rates.
type httpResult struct {
	PerSecond float64
	CPU       time.Duration // of this process, over the measured requests
}

// httpFigure compares net/http over rdmanet with net/http over TCP: GETs over connections that are kept, as many at once, both
// processes on one CPU, blocking.
func httpFigure() ([]row, error) {
	fmt.Printf("net/http, GET of %d bytes, %d connections, two processes on one CPU, %d requests a run\n", httpBody, httpConns, httpCount)
	fmt.Printf("%-5s %12s %12s %8s %14s %14s %8s\n", "run", "rdmanet /s", "TCP /s", "ratio", "rdmanet CPU", "TCP CPU", "ratio")
	var rates, cpus []float64
	for i := range httpRounds {
		rs, rc, err := runPair[httpResult](sameCPU, "http")
		if err != nil {
			return nil, err
		}
		ns, nc, err := runPair[httpResult](sameCPU, "web")
		if err != nil {
			return nil, err
		}
		ours, theirs := rs.CPU+rc.CPU, ns.CPU+nc.CPU
		rates, cpus = append(rates, rc.PerSecond/nc.PerSecond), append(cpus, float64(ours)/float64(theirs))
		fmt.Printf("%-5d %12.0f %12.0f %8.2f %14v %14v %8.2f\n",
			i+1, rc.PerSecond, nc.PerSecond, rates[i], ours/httpCount, theirs/httpCount, cpus[i])
	}
	fmt.Printf("median ratio: requests %.2f, CPU per request %.2f\n", median(rates), median(cpus))
	return []row{
		atLeast("net/http over rdmanet, 64 connections, against TCP: requests per second", 0.95, median(rates)),
		{"the same: CPU per request", "published", fmt.Sprintf("%.2f", median(cpus)), false},
	}, nil
}

// httpServer answers GETs on l until the client's last, and reports.
func httpServer(l net.Listener) error {
	fmt.Println(l.Addr())
	body := bytes.Repeat([]byte("x"), httpBody)
	var n atomic.Int64
	var begin time.Duration
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body) // a client that has gone is seen to below
		switch n.Add(1) {
		case httpWarmUp:
			begin = cpuTime()
		case httpWarmUp + httpCount:
			_ = report(httpResult{CPU: cpuTime() - begin})
		}
	})}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	return waitFor(failed)
}

func httpOverRDMA([]string) error {
	rt, _, err := openRuntime()
	if err != nil {
		return err
	}
	l, err := rdmanet.Listen(rt, "127.0.0.1:0")
	if err != nil {
		return err
	}
	return httpServer(l)
}

func httpOverTCP([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return httpServer(l)
}

// httpClient makes the requests, each connection's one after the other.
func httpClient(addr string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) error {
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: httpConns, MaxConnsPerHost: httpConns, DisableCompression: true}
	client := &http.Client{Transport: transport}
	var errs atomic.Value
	requests := func(count int64) {
		var wg sync.WaitGroup
		var begun atomic.Int64
		for range httpConns {
			wg.Go(func() {
				for begun.Add(1) <= count {
					if err := get(client, "http://"+addr); err != nil {
						errs.CompareAndSwap(nil, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	requests(httpWarmUp)
	begin, start := cpuTime(), time.Now()
	requests(httpCount)
	took := time.Since(start)
	if err, ok := errs.Load().(error); ok {
		return err
	}
	return report(httpResult{PerSecond: httpCount / took.Seconds(), CPU: cpuTime() - begin})
}

func get(client *http.Client, url string) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && n != httpBody {
		err = fmt.Errorf("%d bytes came", n)
	}
	return err
}

func httpClientRDMA(args []string) error {
	rt, _, err := openRuntime()
	if err != nil {
		return err
	}
	return httpClient(args[0], rdmanet.NewDialer(rt).DialContext)
}

func httpClientTCP(args []string) error {
	return httpClient(args[0], (&net.Dialer{}).DialContext)
}
