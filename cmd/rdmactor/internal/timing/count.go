package timing

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// count counts the connections of a server. Any goroutine may use it.
type count struct {
	at      cmid.Addr
	timeout time.Duration
	gone    chan struct{} // closed when the listener has failed
	lose    sync.Once

	mu     sync.Mutex
	served Served
	open   int
}

func newCount(c Config) *count { return &count{timeout: c.Timeout, gone: make(chan struct{})} }

func (c *count) countOpened()   { c.addCounts(1, 0) }
func (c *count) countAccepted() { c.addCounts(0, 1) }
func (c *count) countClosed()   { c.addCounts(-1, 0) }

func (c *count) addCounts(open, accepted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += open
	c.served.Accepted += accepted
}

func (c *count) recordError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.Errors++
	if c.served.First == nil {
		c.served.First = err
	}
}

// recordListenerLost records that the listener has failed.
func (c *count) recordListenerLost() { c.lose.Do(func() { close(c.gone) }) }

// Addr implements Server.
func (c *count) Addr() cmid.Addr { return c.at }

// Failed implements Server.
func (c *count) Failed() <-chan struct{} { return c.gone }

// Served implements Server.
func (c *count) Served() Served {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// Idle implements Server. It waits, because the ends of connections arrive a moment after the peers
// have ended them.
func (c *count) Idle() (left int) {
	for end := time.Now().Add(c.timeout); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		open := c.open
		c.mu.Unlock()
		if open == 0 || time.Now().After(end) {
			return open
		}
	}
}
