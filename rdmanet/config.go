package rdmanet

import (
	"cmp"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Config is how a Listener or a Dialer works. Zero fields have defaults.
type Config struct {
	// Backlog is how many connections a Listener makes that nobody has taken from Accept: 1,024.
	// Who comes then is rejected. A Dialer has no use for it.
	Backlog int
	// Linger is how long a Conn that was closed goes on delivering what was written: 30 s. Then its
	// identifier is destroyed. If it is negative that is at once, without a FIN: the peer's Read
	// says ECONNRESET behind what has arrived. Conn.SetLinger says it for one.
	Linger time.Duration
	// Local is where to connect from. The routing tables choose otherwise. A Listener has no use
	// for it.
	Local rdma.Addr
	// MaxMessage is how large a piece of the stream the peer may send: 64 KiB. Credits are how many
	// that were not read yet: 32. So these are how much memory one peer can occupy. See
	// rdma.IDConfig.MaxMessage for what that costs on the kernel's devices.
	MaxMessage, Credits int
}

func (c Config) withDefaults() Config {
	c.Backlog, c.Linger = cmp.Or(c.Backlog, 1024), cmp.Or(c.Linger, 30*time.Second)
	c.MaxMessage, c.Credits = cmp.Or(c.MaxMessage, 64<<10), cmp.Or(c.Credits, 32)
	return c
}
