package contest

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// Flow sends messages of one size in one direction. The receiver answers each batch, and the sender
// has no more than Window messages unanswered. Plain TCP uses TCP's window instead.
type Flow struct {
	Size, Batch, Window int
	Largest             int // longest message that receivers accept; 0: Size
}

// Serve is for Scenario.Serve.
func (f Flow) Serve(e measure.Entry) (measure.Service, error) {
	switch e.Contestant {
	case "verbs", ownMemory, "verbs-write":
		return serveVerbs(e)
	case "net.Conn", "read/write", cryptoTLS:
		return listenPlain(e, f.drainBatches)
	case "actor":
		return f.serveActor(e)
	}
	if aeadKeys[e.Contestant] > 0 {
		return measure.Service{Close: func() error { return nil }}, nil
	}
	return measure.Service{}, fmt.Errorf("%s is not for one way", e.Contestant)
}

// Dial is for Scenario.Dial.
func (f Flow) Dial(addr string, e measure.Entry) (measure.Client, error) {
	switch e.Contestant {
	case "verbs", ownMemory:
		return dialVerbs(addr, e, perf.Test{Op: perf.Send, Kind: perf.Bandwidth, Size: f.Size, Depth: f.Window})
	case "verbs-write":
		return dialVerbs(addr, e, perf.Test{Op: perf.Write, Kind: perf.Bandwidth, Size: f.Size, Depth: f.Window})
	case "net.Conn", "read/write", cryptoTLS:
		c, err := dialPlain(addr, e)
		if err != nil {
			return measure.Client{}, err
		}
		return measure.Client{Run: func(d time.Duration) (measure.Sample, error) { return f.pourMessages(c, d) }, Close: c.Close}, nil
	case "actor":
		c, err := dialActors(addr, e, f.Window+1, f.idConfig())
		if err != nil {
			return measure.Client{}, err
		}
		return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
			o := &oneWay{Flow: f, d: d}
			err := c.runJob(o)
			return measure.Sample{N: o.arrived, Seconds: o.took.Seconds(), Bytes: o.arrived * f.Size}, err
		}, Close: c.Close}, nil
	}
	if key := aeadKeys[e.Contestant]; key > 0 {
		return f.newAEADClient(key)
	}
	return measure.Client{}, fmt.Errorf("%s is not for one way", e.Contestant)
}

// idConfig returns a configuration with room for two windows.
func (f Flow) idConfig() rdma.IDConfig {
	return rdma.IDConfig{MaxMessage: max(f.Size, f.Largest), Credits: 2 * f.Window}
}

func (f Flow) serveActor(e measure.Entry) (measure.Service, error) {
	got := make(map[*actor.PID]int)
	return ServeActors(e, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.Received); !ok {
			return
		}
		n := got[ctx.Sender()] + 1
		if n == f.Batch {
			n = 0
			ctx.Respond(rdma.NewSend(nil))
		}
		got[ctx.Sender()] = n
	}, f.idConfig())
}

// oneWay is a job that sends batches, several at a time. The receiver answers each batch with an
// empty message.
type oneWay struct {
	Flow
	d             time.Duration
	begun         time.Time
	sent, arrived int
	over          bool
	took          time.Duration
}

func (o *oneWay) beginSending(send sendFunc) {
	o.begun = time.Now()
	o.fillWindow(send)
}

func (o *oneWay) fillWindow(send sendFunc) {
	for !o.over && o.sent+o.Batch <= o.arrived+o.Window {
		for range o.Batch {
			send(rdma.NewSendBuffer(o.Size)) // filled in the memory from which it is sent, as in
			// verbs
		}
		o.sent += o.Batch
	}
}

func (o *oneWay) handleMessage(p []byte, send sendFunc) (bool, error) {
	if len(p) > 0 {
		return true, fmt.Errorf("a message of %d bytes came back", len(p))
	}
	o.arrived += o.Batch
	o.took = time.Since(o.begun)
	o.over = o.over || o.took >= o.d
	o.fillWindow(send)
	return o.over && o.arrived == o.sent, nil
}

// drainBatches reads batches, up to 1 MiB at a time, and answers each batch with a byte.
func (f Flow) drainBatches(c net.Conn) {
	b := make([]byte, 1<<20)
	for got := 0; ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		for got += n; got >= f.Batch*f.Size; got -= f.Batch * f.Size {
			if _, err := c.Write([]byte{1}); err != nil {
				return
			}
		}
	}
}

// pourMessages writes each message with one write. It reads the answers after the last write. They
// are few bytes, and not needed earlier.
func (f Flow) pourMessages(c net.Conn, d time.Duration) (measure.Sample, error) {
	payload := NewPayload(f.Size)
	begun := time.Now()
	batches := 0
	for over := false; !over; over = time.Since(begun) >= d {
		batches++
		for range f.Batch {
			if _, err := c.Write(payload); err != nil {
				return measure.Sample{}, err
			}
		}
	}
	for left := batches; left > 0; {
		n, err := c.Read(make([]byte, left))
		if err != nil {
			return measure.Sample{}, err
		}
		left -= n
	}
	n := batches * f.Batch
	return measure.Sample{N: n, Seconds: time.Since(begun).Seconds(), Bytes: n * f.Size}, nil
}

// aeadKeys are the lengths of the keys of AES-GCM, by the entries that only seal and open messages:
// that of PSK mode, and that of TLS mode and crypto/tls.
var aeadKeys = map[string]int{"AES-256-GCM": 32, "AES-128-GCM": 16}

// newAEADClient makes a client that seals and opens messages, and sends none. It seals Window of
// them before it opens the first, because messages in flight are in no cache either.
func (f Flow) newAEADClient(key int) (measure.Client, error) {
	block, err := aes.NewCipher(make([]byte, key))
	if err != nil {
		return measure.Client{}, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return measure.Client{}, err
	}
	plain, sealed := make([][]byte, f.Window), make([][]byte, f.Window)
	for i := range plain {
		plain[i], sealed[i] = NewPayload(f.Size), make([]byte, 0, f.Size+gcm.Overhead())
	}
	nonce := make([]byte, gcm.NonceSize())
	return measure.Client{Run: func(d time.Duration) (s measure.Sample, err error) {
		begun := time.Now()
		for time.Since(begun) < d {
			for i, p := range plain {
				sealed[i] = gcm.Seal(sealed[i][:0], nonce, p, nil)
			}
			for i, b := range sealed {
				if _, err := gcm.Open(b[:0], nonce, b, nil); err != nil {
					return s, fmt.Errorf("message %d: %w", i, err)
				}
			}
			s.N += f.Window
		}
		s.Seconds, s.Bytes = time.Since(begun).Seconds(), s.N*f.Size
		return s, nil
	}, Close: func() error { return nil }}, nil
}
