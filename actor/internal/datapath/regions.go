package datapath

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Alloc registers n bytes in c's protection domain, within Limits.Memory. They are freed with c at
// the latest.
func (c *Conn) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	if n > c.l.MemoryBudget {
		return nil, fmt.Errorf("%d more bytes of memory for one-sided operations would exceed the limit (WithLimits): %w", n, unix.ENOMEM)
	}
	mr, err := c.pd.Alloc(n, access)
	if err != nil {
		return nil, fmt.Errorf("reg_mr of %d bytes on %s: %w", n, c.Device.Verbs.Name(), err)
	}
	c.l.MemoryBudget -= n
	c.regions = append(c.regions, mr)
	return mr, nil
}

// Free gives memory of alloc's back, which nothing posted names. An error: the device has it still.
func (c *Conn) Free(mr *verbs.MR) error {
	n := len(mr.Bytes)
	if err := c.Device.Verbs.Free(mr); err != nil && !c.Device.removed {
		return fmt.Errorf("dereg_mr of %d bytes on %s: %w", n, c.Device.Verbs.Name(), err)
	}
	c.regions = slices.DeleteFunc(c.regions, func(other *verbs.MR) bool { return other == mr })
	c.l.MemoryBudget += n
	return nil
}

// freeAll gives the rest back, when the queue pair is gone.
func (c *Conn) freeAll() {
	for _, mr := range c.regions {
		c.l.MemoryBudget += len(mr.Bytes)
		c.Device.closed("dereg_mr", c.Device.Verbs.Free(mr))
	}
	c.regions = nil
}
