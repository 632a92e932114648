package rdmanet

import (
	"cmp"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Config configures a Listener or a Dialer. Zero fields have defaults.
type Config struct {
	// Backlog is the number of a Listener's connections that may wait for Accept: 1,024. Further
	// ones are rejected. One address may have at most as many of them as are left for all others. A
	// Dialer ignores it.
	Backlog int
	// Linger is how long a closed Conn goes on delivering the written bytes: 30 s. Then its
	// identifier is destroyed. If Linger is negative, Close destroys it immediately and without a
	// FIN: the peer's Read returns ECONNRESET after the bytes that have arrived. Conn.SetLinger
	// sets it for one Conn.
	Linger time.Duration
	// Local is the address to connect from. If it is not set, the routing tables choose. A Listener
	// ignores it.
	Local rdma.Addr
	// MaxMessage is the largest piece of the stream that the peer may send: 64 KiB. Credits is the
	// number of unread pieces it may have sent: 32. Together they limit the memory that one peer
	// can occupy. See rdma.IDConfig.MaxMessage for the cost on the kernel's devices.
	MaxMessage, Credits int
}

func (c Config) withDefaults() Config {
	c.Backlog, c.Linger = cmp.Or(c.Backlog, 1024), cmp.Or(c.Linger, 30*time.Second)
	c.MaxMessage, c.Credits = cmp.Or(c.MaxMessage, 64<<10), cmp.Or(c.Credits, 32)
	return c
}
