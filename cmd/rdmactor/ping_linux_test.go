package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

func TestSizes(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, size := range []int{1, 2, 23, 64, 4096, 65000, 1 << 20} {
			t.Run(fmt.Sprintf("crc=%t/%d", crc, size), func(t *testing.T) {
				flags := []string{"-v", "-S", fmt.Sprint(size)}
				if crc {
					flags = append(flags, "--crc")
				}
				const rounds = 5
				srv := serve(t, flags...)
				cl := dial(t, srv.port, append(flags, "-V", "-C", fmt.Sprint(rounds))...)
				cl.mustEnd()
				srv.mustEnd()
				var want, wantServer strings.Builder
				b := make([]byte, size)
				for i := range rounds {
					fillRound(b, i)
					fmt.Fprintf(&want, "ping data: %s\n", printedText(b))
					fmt.Fprintf(&wantServer, "server ping data: %s\n", printedText(b))
				}
				if cl.out.String() != want.String() {
					t.Errorf("the client printed %.200q, want %.200q", cl.out, want.String())
				}
				if srv.out.String() != wantServer.String() {
					t.Errorf("the server printed %.200q, want %.200q", srv.out, wantServer.String())
				}
			})
		}
	}
}

// TestRpingText compares fill with rping's output.
func TestRpingText(t *testing.T) {
	b := make([]byte, 64)
	for round, want := range map[int]string{
		0:  "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr",
		9:  "rdma-ping-9: JKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzA",
		10: "rdma-ping-10: KLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzA",
		57: "rdma-ping-57: zABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnop",
		58: "rdma-ping-58: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopq",
	} {
		fillRound(b, round)
		if got := string(printedText(b)); got != want {
			t.Errorf("round %d: %q, rping has %q", round, got, want)
		}
	}
}

func TestSeveralClients(t *testing.T) {
	srv := serve(t, "-P", "-S", "65536")
	var clients []*running
	for i := range 10 {
		clients = append(clients, dial(t, srv.port, "-V", "-C", "50", "-S", fmt.Sprint(1+i*7000)))
	}
	for _, cl := range clients {
		cl.mustEnd()
	}
	dial(t, srv.port, "-V", "-C", "1").mustEnd() // the server continues
	srv.cancel()
	srv.mustEnd()
	if srv.errs.Len() > 0 {
		t.Errorf("the server complains although nothing was wrong: %s", srv.errs)
	}
}

// TestOneClient: without -P a second client is refused, not left waiting.
func TestOneClient(t *testing.T) {
	srv := serve(t)
	first := dialForever(t, srv.port)
	dial(t, srv.port, "-C", "1").mustFail("connecting", "ECONNREFUSED")
	first.cancel()
	first.mustEnd()
	srv.mustEnd()
}

func TestWrongSize(t *testing.T) {
	srv := serve(t, "-S", "64")
	cl := dial(t, srv.port, "-C", "3", "-S", "65")
	srv.mustFail("client 127.0.0.1:", "the client's source: the client offers 65 bytes", "1 to 64", "-S")
	cl.mustFail("round 0, the server's read", "the peer has gone")
}

func TestGarbage(t *testing.T) {
	say := func(words string) func(*conn) error {
		return func(c *conn) error { return c.QP.PostSend(&verbs.SendWR{Op: verbs.Send, Inline: []byte(words)}) }
	}
	nowhere := buffer{addr: 4096, rkey: 0xdeadbeef, size: 64}
	twice := func(c *conn) error {
		mr, err := c.Alloc(64, verbs.RemoteRead)
		return errors.Join(err, c.sendBuffer(bufferOf(mr)), c.sendBuffer(bufferOf(mr)))
	}
	for name, c := range map[string]struct {
		garbage func(*conn) error
		want    []string
	}{
		"short":       {say("hello"), []string{"a message of 5 bytes", "have 16"}},
		"empty":       {say(""), []string{"a message of 0 bytes"}},
		"long":        {say("a message of thirty-two bytes..."), []string{"receive", "length"}},
		"no memory":   {func(c *conn) error { return c.sendBuffer(nowhere) }, []string{"reading 64 bytes"}},
		"no bytes":    {func(c *conn) error { return c.sendBuffer(buffer{}) }, []string{"offers 0 bytes"}},
		"out of turn": {twice, []string{"reading 64 bytes", "a message before the read is done"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, "--timeout", "5s")
			meet(t, srv.port, c.garbage, nil)
			srv.mustFail(append(c.want, "client 127.0.0.1:")...)

			srv = serve(t, "-P", "--timeout", "5s")
			st := meet(t, srv.port, c.garbage, nil)
			<-st.gone
			dial(t, srv.port, "-V", "-C", "2").mustEnd()
			srv.cancel()
			srv.mustEnd()
			for _, w := range c.want {
				if !strings.Contains(srv.errs.String(), w) {
					t.Errorf("the server reports the stranger as %q, which does not say %q", srv.errs, w)
				}
			}
		})
	}
}

// TestSinkTooSmall: the data read does not fit into the memory to write.
func TestSinkTooSmall(t *testing.T) {
	srv := serve(t)
	var mr *verbs.MR
	meet(t, srv.port,
		func(c *conn) (err error) {
			if mr, err = c.Alloc(64, verbs.RemoteRead); err != nil {
				return err
			}
			return c.sendBuffer(bufferOf(mr))
		},
		func(c *conn, _ buffer) error { return c.sendBuffer(buffer{addr: mr.Addr, rkey: mr.RKey, size: 63}) })
	srv.mustFail("the client's sink", "wants 64 bytes back in 63")
}

// TestNotWritten: -V detects a server that reports a Write without having written.
func TestNotWritten(t *testing.T) {
	answer := func(c *conn, _ buffer) error { return c.sendBuffer(buffer{}) }
	st := meet(t, "", nil, answer)
	dial(t, st.port, "-V", "-C", "1").mustFail("round 0, the server's write", "data mismatch at byte 0 of 64")
	st = meet(t, "", nil, answer)
	dial(t, st.port, "-C", "1").mustEnd() // unsolicited
}

// TestSilence: each side gives up a silent peer.
func TestSilence(t *testing.T) {
	st := meet(t, "", nil, nil)
	dial(t, st.port, "--timeout", "200ms").mustFail("round 0, the server's read", "no progress for 200ms")
	srv := serve(t, "--timeout", "200ms")
	meet(t, srv.port, nil, nil)
	srv.mustFail("the client's source", "no progress for 200ms")
}

// TestVanish: each side notices immediately that the other has gone in the middle of a round.
func TestVanish(t *testing.T) {
	const never = "1h" // so that no time limit takes effect
	srv := serve(t, "--timeout", never)
	var mr *verbs.MR
	meet(t, srv.port,
		func(c *conn) (err error) {
			if mr, err = c.Alloc(64, verbs.RemoteRead); err != nil {
				return err
			}
			return c.sendBuffer(bufferOf(mr))
		},
		vanish)
	srv.mustFail("the client's sink", "the peer has gone")

	st := meet(t, "", nil, vanish)
	dial(t, st.port, "--timeout", never).mustFail("round 0, the server's read", "the peer has gone")
}

// TestAsksForCRC looks at the flag in the client's MPA Request (RFC 5044, 7.1).
func TestAsksForCRC(t *testing.T) {
	const flags, c = 16, 0x40
	for crc, want := range map[string]byte{"--crc=false": 0, "--crc": c} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		cl := dial(t, port, crc)
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		request := make([]byte, 20)
		if _, err := io.ReadFull(nc, request); err != nil {
			t.Fatalf("%s: no Request: %v", crc, err)
		}
		if got := request[flags] & c; got != want {
			t.Errorf("%s: the Request is %x: its CRC flag is %#x, want %#x", crc, request, got, want)
		}
		nc.Close() // again for a second attempt, with revision 1
		if nc, err = l.Accept(); err == nil {
			nc.Close()
		}
		cl.mustFail("connecting")
	}
}

func TestNobody(t *testing.T) {
	dial(t, "1", "-C", "1").mustFail("connecting", "ECONNREFUSED")
	begin(t, nil, "ping", "-s", "-a", "203.0.113.1").mustFail("bind_addr", "EADDRNOTAVAIL")
}

// TestRejected: the user sees the server's text of a rejection.
func TestRejected(t *testing.T) {
	st := meet(t, "", nil, nil)
	st.rejects.Store(true)
	dial(t, st.port, "-C", "1").mustFail("connecting", `the peer says "this is a chat/1 server"`)
}

func TestInterrupt(t *testing.T) {
	srv := serve(t, "-P")
	cl := dialForever(t, srv.port)
	counted := dialForever(t, srv.port, "-C", "2000000000")
	counted.cancel()
	counted.mustFail("interrupted after", "of 2000000000 rounds")
	cl.cancel()
	cl.mustEnd()
	cl = dialForever(t, srv.port)
	srv.cancel()
	srv.mustEnd()
	cl.mustFail("the peer has gone")
	if srv.errs.Len() > 0 {
		t.Errorf("the server complains although it was asked to end: %s", srv.errs)
	}

	srv = serve(t) // no client connected
	srv.cancel()
	srv.mustEnd()

	st := meet(t, "", nil, nil)
	st.deaf.Store(true)
	early := dial(t, st.port)
	<-st.asked
	early.cancel()
	early.mustFail("connecting: interrupted")
}
