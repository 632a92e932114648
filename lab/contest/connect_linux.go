package contest

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// connectMost bounds the number of connections of a run, because they stay open.
const connectMost = 1000

// hostTime returns the time of the clock that all processes of the host share, in nanoseconds. Like
// the other contestant's clock, it costs no system call.
func hostTime() int64 { return time.Now().UnixNano() }

// ServeConnect is for Scenario.Serve: it starts a server that sends each client the time at which
// its connection was established at the server.
func ServeConnect(e measure.Entry) (measure.Service, error) {
	if e.Contestant != "actor" {
		return serveDials(e)
	}
	return ServeActors(e, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.Established); ok {
			ctx.Respond(rdma.NewSend(binary.BigEndian.AppendUint64(nil, uint64(hostTime()))))
		}
	}, rdma.IDConfig{})
}

// connects is one run that makes connections.
type connects struct {
	d     time.Duration
	begun time.Time
	times stats.Times
	n     int
}

func newConnects(d time.Duration) *connects {
	return &connects{d: d, begun: time.Now(), times: stats.NewTimes(3)}
}

// addTime records how long a connection took, and reports whether it was the last of the run.
func (c *connects) addTime(took time.Duration) (last bool) {
	c.times.Add(took)
	c.n++
	return c.n == connectMost || time.Since(c.begun) >= c.d
}

func (c *connects) newSample() measure.Sample {
	return measure.Sample{N: c.n, Seconds: time.Since(c.begun).Seconds(), Times: measure.Percentiles(c.times)}
}

// DialConnect is for Scenario.Dial: an actor makes one connection after the other.
func DialConnect(addr string, e measure.Entry) (measure.Client, error) {
	if e.Contestant != "actor" {
		return dialPlainly(addr, e), nil
	}
	w, err := OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Client{}, err
	}
	ended := make(chan error, 2)
	var run *connects
	var began, stood int64
	pid := w.Spawn(ended, func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *connects:
			run = m
		case *rdma.Established:
			stood = hostTime()
			return
		case *rdma.Received: // the connection must be established on both sides
			stood = max(stood, int64(binary.BigEndian.Uint64(m.Data)))
			if run.addTime(time.Duration(stood - began)) {
				ended <- nil
				return
			}
		default:
			return
		}
		began = hostTime()
		ctx.Request(w.RT.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
	})
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		run := newConnects(d)
		w.System.Root.Send(pid, run)
		err := <-ended
		return run.newSample(), err
	}, Close: w.Close}, nil
}

// serveDials starts a server that takes one connection after the other, answers one message on
// each, and leaves the connections open.
func serveDials(e measure.Entry) (measure.Service, error) {
	l, err := net.Listen("tcp", Loopback)
	if err != nil {
		return measure.Service{}, err
	}
	ended := make(chan error, 1)
	go func() {
		b := make([]byte, PayloadSize)
		for {
			c, err := l.Accept()
			if err == nil {
				c, err = connOfKind(c, e, tls.Server)
			}
			if err == nil {
				defer c.Close()
				_, err = io.ReadFull(c, b)
			}
			if err == nil {
				_, err = c.Write(b)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return measure.Service{Addr: l.Addr().String(), Close: func() error {
		err := l.Close()
		if e := <-ended; !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
		return err
	}}, nil
}

// dialPlainly makes a client that makes a round trip on each connection.
func dialPlainly(addr string, e measure.Entry) measure.Client {
	var conns []net.Conn
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		run := newConnects(d)
		p, room := make([]byte, PayloadSize), make([]byte, PayloadSize)
		for over := false; !over; {
			began := time.Now()
			c, err := dialPlain(addr, e)
			if err != nil {
				return measure.Sample{}, err
			}
			conns = append(conns, c)
			if _, err := connCalls(c).Call(p, room); err != nil {
				return measure.Sample{}, err
			}
			over = run.addTime(time.Since(began))
		}
		return run.newSample(), nil
	}, Close: func() error {
		var errs []error
		for _, c := range conns {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}}
}
