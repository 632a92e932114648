package slots

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Config configures the connections of a Listener or of Dial. Zero fields have defaults.
type Config struct {
	// Slots is the number of slots in each direction: 8, at most 128. If the sides differ, the
	// lower number counts. Size is the number of bytes in a slot: 256 KiB; again the lower number
	// counts. A connection takes 2 * Slots * Size bytes of memory on each side
	// (rdma.Limits.Memory): the peer writes to one half, the other half is written from.
	Slots, Size int
	// Backlog is the number of a Listener's connections that may wait for Accept: 64. Further ones
	// are rejected. One address may have at most as many of them as are left for all others.
	Backlog int
	// Linger is how long a closed Conn goes on sending the slots sent before: 30 s.
	Linger time.Duration
	// Local is the address to connect from. If it is not set, the routing tables choose.
	Local rdma.Addr
}

const (
	maxSlots = 128
	maxBytes = 1 << 30 // of a ring
)

func (c Config) withDefaults() (Config, error) {
	c.Slots, c.Size = cmp.Or(c.Slots, 8), cmp.Or(c.Size, 256<<10)
	c.Backlog, c.Linger = cmp.Or(c.Backlog, 64), cmp.Or(c.Linger, 30*time.Second)
	if c.Slots < 1 || c.Slots > maxSlots || c.Size < 1 || c.Size > maxBytes/c.Slots || c.Backlog < 1 || c.Linger < 0 {
		return c, fmt.Errorf("slots: %d slots of %d bytes, a backlog of %d, a linger of %v: %w", c.Slots, c.Size, c.Backlog, c.Linger, unix.EINVAL)
	}
	return c, nil
}

// idConfig returns the configuration of an identifier. The peer sends at most one small message
// for each slot of either direction before it has to wait for this side.
func (c *Config) idConfig() rdma.IDConfig {
	return rdma.IDConfig{Memory: 2 * c.Slots * c.Size, MaxMessage: 1 << 10, Credits: max(32, 2*c.Slots+8), Stream: true}
}
