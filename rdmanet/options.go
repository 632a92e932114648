package rdmanet

import (
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Option is an option of Listen, Dial and NewDialer.
type Option func(*config)

type config struct {
	backlog    int
	linger     time.Duration
	local      rdma.Addr
	maxMessage int
	credits    int
}

func newConfig(opts []Option) config {
	cfg := config{backlog: 1024, linger: 30 * time.Second, maxMessage: 64 << 10, credits: 32}
	for _, o := range opts {
		o(&cfg)
	}
	return cfg
}

// WithBacklog says how many connections a Listener makes that nobody has taken from Accept: 1,024.
// Who comes then is rejected.
func WithBacklog(n int) Option { return func(c *config) { c.backlog = n } }

// WithLinger says how long a Conn that was closed goes on delivering what was written: 30 s. Then
// its identifier is destroyed. With 0 that is at once, without a FIN: the peer's Read says
// ECONNRESET behind what has arrived. Conn.SetLinger says it for one.
func WithLinger(d time.Duration) Option { return func(c *config) { c.linger = d } }

// WithLocalAddr says where to connect from; the routing tables choose otherwise. Listen has no use
// for it.
func WithLocalAddr(a rdma.Addr) Option { return func(c *config) { c.local = a } }

// WithMessages says how large a piece of the stream the peer may send (64 KiB) and how many that
// were not read yet (32), and so how much memory one peer can occupy. See rdma.WithMessages for
// what that costs on the kernel's devices.
func WithMessages(maxBytes, credits int) Option {
	return func(c *config) { c.maxMessage, c.credits = maxBytes, max(credits, 1) }
}
