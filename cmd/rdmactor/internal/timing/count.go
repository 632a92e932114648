package timing

import (
	"sync"
	"time"
)

// count is how a server's connections are doing. Any goroutine.
type count struct {
	mu     sync.Mutex
	served Served
	open   int
	gone   chan struct{} // closed when the listener has failed
	broken bool
}

func newCount() *count { return &count{gone: make(chan struct{})} }

func (c *count) begun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
}

func (c *count) accepted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.Accepted++
}

func (c *count) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}

func (c *count) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.Errors++
	if c.served.First == nil {
		c.served.First = err
	}
}

// lost notes that the listener has failed.
func (c *count) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.broken {
		c.broken = true
		close(c.gone)
	}
}

// Failed is Server's.
func (c *count) Failed() <-chan struct{} { return c.gone }

// Served is Server's.
func (c *count) Served() Served {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// idle waits until no connection is open. The peers have ended theirs: it takes a moment.
func (c *count) idle(timeout time.Duration) int {
	for end := time.Now().Add(timeout); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		open := c.open
		c.mu.Unlock()
		if open == 0 || time.Now().After(end) {
			return open
		}
	}
}
