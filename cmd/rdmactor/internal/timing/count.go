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

func (c *count) begun()    { c.add(1, 0) }
func (c *count) accepted() { c.add(0, 1) }
func (c *count) over()     { c.add(-1, 0) }

func (c *count) add(open, accepted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += open
	c.served.Accepted += accepted
}

func (c *count) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.Errors++
	if c.served.First == nil {
		c.served.First = err
	}
}

// lost records that the listener has failed.
func (c *count) lost() { c.lose.Do(func() { close(c.gone) }) }

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
