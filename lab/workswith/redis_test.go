package workswith

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/tidwall/redcon"
)

// serveRedis runs a server of redcon with GET and SET.
func serveRedis(t *testing.T, l net.Listener) {
	var values sync.Map
	go func() {
		_ = redcon.Serve(l, func(c redcon.Conn, cmd redcon.Command) {
			switch strings.ToLower(string(cmd.Args[0])) {
			case "ping":
				c.WriteString("PONG")
			case "set":
				values.Store(string(cmd.Args[1]), string(cmd.Args[2]))
				c.WriteString("OK")
			case "get":
				if v, ok := values.Load(string(cmd.Args[1])); ok {
					c.WriteBulkString(v.(string))
				} else {
					c.WriteNull()
				}
			default:
				c.WriteError("ERR unknown command '" + string(cmd.Args[0]) + "'")
			}
		}, nil, nil)
	}()
}

// go-redis sets and gets values of a server of redcon, also in a pipeline.
func TestGoRedis(t *testing.T) {
	l, d := listen(t)
	serveRedis(t, l)
	client := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Dialer: d.DialContext, Protocol: 2, DisableIdentity: true})
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p := client.Pipeline()
	for range 1000 {
		p.Get(t.Context(), "k")
	}
	answers, err := p.Exec(t.Context())
	if err != nil || len(answers) != 1000 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for _, a := range answers {
		if v, err := a.(*redis.StringCmd).Result(); v != "v" || err != nil {
			t.Fatalf("%q, %v", v, err)
		}
	}
	if err := client.Get(t.Context(), "other").Err(); err != redis.Nil { //nolint:errorlint // as documented
		t.Errorf("a key that is not there: %v", err)
	}
}

// rueidis does, too, from many goroutines over one connection.
func TestRueidis(t *testing.T) {
	l, d := listen(t)
	serveRedis(t, l)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{l.Addr().String()}, AlwaysRESP2: true, DisableCache: true, ForceSingleClient: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "", addr)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 100 {
				if v, err := client.Do(context.Background(), client.B().Get().Key("k").Build()).ToString(); v != "v" || err != nil {
					t.Errorf("%q, %v", v, err)
					return
				}
			}
		})
	}
	callers.Wait()
}
