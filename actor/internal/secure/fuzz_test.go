package secure

import (
	"bytes"
	"testing"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// FuzzPSKServer: an unauthenticated peer stays so, whatever it sends.
func FuzzPSKServer(f *testing.F) {
	who := credential("node-1", 1)
	k := keys(f, who)
	_, request, err := NewPSKClient(who, AES256GCM, route, requestHello)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(request[:], []byte{})
	f.Add(request[:], bytes.Repeat([]byte{1}, 100))
	f.Add(append(bytes.Clone(lowOrder[1]), request[publicLen:]...), []byte{1})
	f.Fuzz(func(t *testing.T, request, first []byte) {
		server, _, err := NewPSKServer(k, AES256GCM, route, requestHello, request, replyHello)
		if err != nil {
			wantRefused(t, "a request", err)
			return
		}
		_, identity, channel, err := server.Confirm(nil, first)
		wantRefused(t, "a first message", err)
		if identity != "" || channel != nil {
			t.Errorf("%q is there", identity)
		}
	})
}

// FuzzPSKClient: no reply is the server's but the server's.
func FuzzPSKClient(f *testing.F) {
	who := credential("node-1", 1)
	c := talk(f, AES256GCM)
	f.Add(append(bytes.Clone(replyHello[:]), c.reply[:]...))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) < HelloLen {
			return
		}
		client, _, err := NewPSKClient(who, AES256GCM, route, requestHello)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Finish(Hello(reply), reply[HelloLen:])
		wantRefused(t, "a reply", err)
	})
}

// FuzzOpen: of all bytes only the next record opens.
func FuzzOpen(f *testing.F) {
	for i, s := range suites {
		sealer, _ := pair(f, s)
		f.Add(byte(i), seal(f, sealer, "hello"), seal(f, sealer, "again"))
	}
	f.Fuzz(func(t *testing.T, suite byte, one, two []byte) {
		sealer, opener := pair(t, suites[int(suite)%len(suites)])
		for _, text := range []string{"hello", "again"} {
			right := seal(t, sealer, text)
			given := one
			if text == "again" {
				given = two
			}
			got, err := opener.Open(nil, given)
			if bytes.Equal(given, right) && opener.failed == nil {
				if err != nil || string(got) != text {
					t.Fatalf("%q, %v, want %q", got, err, text)
				}
				continue
			}
			wantTampered(t, "other bytes", err)
		}
	})
}

// FuzzLarge: of all bytes only the message itself opens.
func FuzzLarge(f *testing.F) {
	sealer, _ := largePair(f, AES256GCM)
	sealed, number := sealLarge(f, sealer, 100)
	f.Add(sealed, 100, number)
	f.Add(sealed, 99, number)
	f.Add(sealed, -1, number+1)
	f.Fuzz(func(t *testing.T, memory []byte, n int, as uint64) {
		_, opener := largePair(t, AES256GCM)
		right := bytes.HasPrefix(memory, sealed) && n == 100 && as == number
		if err := openLarge(opener, bytes.Clone(memory), n, as); (err == nil) != right {
			t.Fatalf("%d bytes as number %d: %v", n, as, err)
		}
	})
}

// FuzzTLS: no bytes of a stranger's end a handshake, on either side.
func FuzzTLS(f *testing.F) {
	client, server := configs(f, certtest.New(f))
	s := begin(f, client, server, tlsPeer, tlsPeer)
	var all []byte
	s.run(func(_ int, frame []byte) []byte {
		all = append(append(all, byte(len(frame)>>8), byte(len(frame))), frame...)
		return frame
	})
	f.Add(all)
	f.Add([]byte{0, 4, frameHandshake, levelInitial, 1, 0})
	f.Fuzz(func(t *testing.T, stream []byte) {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		for len(stream) >= 2 {
			n := min(int(stream[0])<<8|int(stream[1]), len(stream)-2)
			frame := stream[2 : 2+n]
			stream = stream[2+n:]
			for _, side := range []*TLS{s.client, s.server} {
				if err := side.Take(frame); err != nil {
					wantRefused(t, "a frame", err)
				}
				if side.Done() {
					t.Fatal("done with a stranger")
				}
			}
		}
	})
}
