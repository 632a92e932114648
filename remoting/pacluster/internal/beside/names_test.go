package beside

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

// twoAddresses is a name with two addresses, of which only the second answers, and silentAddress is
// the first.
const twoAddresses, silentAddress = "two.beside.test", "127.0.0.2"

// resolver answers for twoAddresses alone.
func resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveNames(server)
		return client, nil
	}}
}

// serveNames answers questions as a name server does over TCP.
func serveNames(c net.Conn) {
	defer c.Close()
	for b := make([]byte, 1<<10); ; {
		n, err := c.Read(b[:2])
		if err != nil || n < 2 {
			return
		}
		size := int(binary.BigEndian.Uint16(b))
		if n, err = c.Read(b[:size]); err != nil || n < size {
			return
		}
		if _, err := c.Write(answerName(b[:size])); err != nil {
			return
		}
	}
}

// answerName returns the answer to a question.
func answerName(q []byte) []byte {
	end := 12
	var labels []string
	for q[end] != 0 {
		labels = append(labels, string(q[end+1:end+1+int(q[end])]))
		end += 1 + int(q[end])
	}
	const typeA, authoritative, noSuchName = 1, 0x8580, 3
	question := q[12 : end+5]
	a := append([]byte{0, 0}, q[:2]...)
	if strings.Join(labels, ".") != twoAddresses {
		a = append(binary.BigEndian.AppendUint16(a, authoritative|noSuchName), 0, 1, 0, 0, 0, 0, 0, 0)
		a = append(a, question...)
	} else if q[end+2] != typeA {
		a = append(binary.BigEndian.AppendUint16(a, authoritative), 0, 1, 0, 0, 0, 0, 0, 0)
		a = append(a, question...)
	} else {
		a = append(binary.BigEndian.AppendUint16(a, authoritative), 0, 1, 0, 2, 0, 0, 0, 0)
		a = append(a, question...)
		for _, addr := range []string{silentAddress, "127.0.0.1"} {
			a = append(a, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
			a = append(a, net.ParseIP(addr).To4()...)
		}
	}
	binary.BigEndian.PutUint16(a, uint16(len(a)-2))
	return a
}

// listenSilently listens at an address that never answers, because its queue is full.
func listenSilently(t *testing.T, port int) {
	t.Helper()
	at := &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(silentAddress).To4())}
	socket := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	l := socket()
	if err := errors.Join(unix.Bind(l, at), unix.Listen(l, 0)); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		_ = unix.Connect(socket(), at)
	}
	c, err := net.DialTimeout("tcp", net.JoinHostPort(silentAddress, fmt.Sprint(port)), 100*time.Millisecond)
	if err == nil {
		c.Close()
		t.Fatal("it answers")
	}
}

// A node's name has two addresses, of which the first is silent.
func silentFirst(t *testing.T, r transport) outcome {
	_, port := split(t, proctest.FreeAddrs(t, 1)[0])
	listenSilently(t, port)
	name := net.JoinHostPort(twoAddresses, fmt.Sprint(port))
	a, b := r.start(t, options{}), r.start(t, options{name: name, listen: net.JoinHostPort("127.0.0.1", fmt.Sprint(port))})
	b.spawn("echo", echo)
	o := outcome{of: 1}
	got, err := a.ask(b.pid("echo"), "x", soon)
	if o.note = fmt.Sprint(got, err); got == "x" {
		o.good = 1
	}
	return o
}

// A PID that has another address than the node's name, which leads there, too, is reached by
// Proto.Actor's remote. In package remoting it is another node's: its sender learns immediately
// that it was not reached, and the log reports that another node answers (docs/remoting.md, "Where
// a node is").
func TestAlias(t *testing.T) {
	for _, r := range transports() {
		t.Run(r.name, func(t *testing.T) {
			var log logged
			a, b := r.start(t, options{log: slog.New(slog.NewTextHandler(&log, nil))}), r.start(t, options{})
			b.spawn("echo", echo)
			_, port := split(t, b.name)
			alias := net.JoinHostPort("localhost", fmt.Sprint(port))
			got, err := a.ask(actor.NewPID(alias, "echo"), "x", soon)
			if r.name == "protoactor" {
				if got != "x" {
					t.Errorf("%q, %v: docs/remoting.md says that it is reached", got, err)
				}
				return
			}
			if !errors.Is(err, actor.ErrDeadLetter) {
				t.Errorf("%q, %v", got, err)
			}
			for over := time.Now().Add(soon); !strings.Contains(log.text(), "another node answers"); time.Sleep(time.Millisecond) {
				if time.Now().After(over) {
					t.Fatalf("the log does not say why: %s", log.text())
				}
			}
		})
	}
}

// logged is a log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
