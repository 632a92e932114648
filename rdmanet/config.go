package rdmanet

import (
	"cmp"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Config is how a Listener or a Dialer works. Zero fields have defaults.
type Config struct {
	// Backlog is how many connections of a Listener may be made and not accepted: 1,024. Further
	// ones are rejected. One address may have as many of them as are left for all others. A Dialer
	// has no use for it.
	Backlog int
	// Linger is how long a Conn that was closed goes on delivering what was written: 30 s. Then
	// its identifier is destroyed. If Linger is negative that happens at once and without a FIN:
	// the peer's Read returns ECONNRESET after what has arrived. Conn.SetLinger sets it for one
	// Conn.
	Linger time.Duration
	// Local is the address to connect from. If it is not set the routing tables choose. A Listener
	// has no use for it.
	Local rdma.Addr
	// MaxMessage is how large a piece of the stream the peer may send: 64 KiB. Credits is how many
	// pieces it may send that were not read yet: 32. The two limit how much memory one peer can
	// occupy. See rdma.IDConfig.MaxMessage for what that costs on the kernel's devices.
	MaxMessage, Credits int
}

func (c Config) withDefaults() Config {
	c.Backlog, c.Linger = cmp.Or(c.Backlog, 1024), cmp.Or(c.Linger, 30*time.Second)
	c.MaxMessage, c.Credits = cmp.Or(c.MaxMessage, 64<<10), cmp.Or(c.Credits, 32)
	return c
}
