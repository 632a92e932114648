package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/cmid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far longer than any program here takes.
const patience = 2 * time.Minute

// playing is a program that runs in this process.
type playing struct {
	args   []string
	output *lockedBuffer
	status chan int
}

func start(args ...string) *playing { return startOn(newDriver, args...) }

func startOn(drivers func(string) (cmid.Driver, error), args ...string) *playing {
	p := &playing{args: args, output: new(lockedBuffer), status: make(chan int, 1)}
	go func() { p.status <- run(args, p.output, p.output, drivers) }()
	return p
}

// end waits for the program's end, and checks its exit status and output.
func (p *playing) end(t *testing.T, status int, says string) {
	t.Helper()
	select {
	case got := <-p.status:
		if got != status || !strings.Contains(p.output.String(), says) {
			t.Errorf("%q ended with %d, want %d, saying\n%s, want %q in it", p.args, got, status, p.output, says)
		}
	case <-time.After(patience):
		t.Fatalf("%q hangs, saying\n%s", p.args, p.output)
	}
}

// port waits until the program prints its address, and returns the port.
func (p *playing) port(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(p.says(t, "listening on "))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// says waits until the program prints a line that begins with begin, and returns the rest of the
// line.
func (p *playing) says(t *testing.T, begin string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for line := range strings.Lines(p.output.String()) {
			if rest, ok := strings.CutPrefix(line, begin); ok && strings.HasSuffix(rest, "\n") {
				return strings.TrimSpace(rest)
			}
		}
	}
	t.Fatalf("%q does not say %q:\n%s", p.args, begin, p.output)
	return ""
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestPairs: each program against its own other side, on the embedded device.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name, server, client string
		serverStatus         int
		serverSays           string
		clientStatus         int
		clientSays           string
	}{
		{
			"rdma", "rdma_server -s 127.0.0.1 -p 0", "rdma_client -s 127.0.0.1",
			0, "rdma_server: end 0", 0, "rdma_client: end 0",
		},
		{
			"ucmatose", "ucmatose -b 127.0.0.1 -p 0", "ucmatose -s 127.0.0.1",
			0, "disconnected\ntest complete\nreturn status 0", 0, "test complete\nreturn status 0",
		},
		{
			"ucmatose 10", "ucmatose -b 127.0.0.1 -p 0 -c 10 -S 4000", "ucmatose -s 127.0.0.1 -c 10 -S 4000",
			0, "test complete\nreturn status 0", 0, "test complete\nreturn status 0",
		},
		{
			"ucmatose 100", "ucmatose -b 127.0.0.1 -p 0 -c 100 -C 3 -S 1", "ucmatose -s 127.0.0.1 -b 127.0.0.2 -c 100 -C 3 -S 1",
			0, "test complete\nreturn status 0", 0, "test complete\nreturn status 0",
		},
		{
			"messages too short", "ucmatose -b 127.0.0.1 -p 0 -S 99", "ucmatose -s 127.0.0.1",
			failed, "return status -1", failed, "message 0 has 99 bytes, want 100",
		},
		{
			"messages too long", "ucmatose -b 127.0.0.1 -p 0 -S 101", "ucmatose -s 127.0.0.1",
			failed, "return status -1", failed, "message too long for the receive",
		},
		{
			"messages missing", "ucmatose -b 127.0.0.1 -p 0 -C 10", "ucmatose -s 127.0.0.1 -C 9",
			failed, "return status -1", failed, "no receive posted",
		},
		{
			"another program", "rdma_server -s 127.0.0.1 -p 0 -timeout 300ms", "ucmatose -s 127.0.0.1 -timeout 3s",
			failed, "receiving: not within 300ms", failed, "the peer has gone; 0 of 10 messages received",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := start(strings.Fields(c.server)...)
			client := start(append(strings.Fields(c.client), "-p", server.port(t))...)
			client.end(t, c.clientStatus, c.clientSays)
			server.end(t, c.serverStatus, c.serverSays)
		})
	}
}

// TestNobodyListens: a failure is an exit status.
func TestNobodyListens(t *testing.T) {
	for _, program := range []string{"rdma_client", "ucmatose"} {
		start(program, "-s", "127.3.2.1").end(t, failed, "nobody listens on that port")
	}
}

// TestDatagramsNeedADevice: the embedded device has none, and reports that.
func TestDatagramsNeedADevice(t *testing.T) {
	start("udaddy", "-b", "127.0.0.1").end(t, failed, "return status -1")
	start("mckey", "-m", "239.1.1.1", "-b", "127.0.0.1").end(t, failed, "return status -1")
}

func TestBadCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                              "which program?",
		"rping":                         "which program?",
		"rdma_client -x":                "-x",
		"rdma_client 10.0.0.1":          `unexpected "10.0.0.1"`,
		"ucmatose -c many":              "many",
		"rdma_server --device infinity": "infinity",
		"ucmatose -C 0":                 "at least 1",
	} {
		var out bytes.Buffer
		if status := run(strings.Fields(line), io.Discard, &out, newDriver); status == 0 || !strings.Contains(out.String(), want) {
			t.Errorf("rdmapeer %s: status %d, says %q, want %q in it", line, status, &out, want)
		}
	}
}
