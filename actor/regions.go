package actor

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// alloc registers n bytes in c's protection domain, within Limits.Memory. They are freed with c at the latest.
func (c *conn) alloc(n int, access verbs.Access) (*verbs.MR, error) {
	if n > c.l.memoryBudget {
		return nil, fmt.Errorf("%d more bytes of memory for one-sided operations would exceed the limit (WithLimits): %w", n, unix.ENOMEM)
	}
	mr, err := c.pd.Alloc(n, access)
	if err != nil {
		return nil, fmt.Errorf("reg_mr of %d bytes on %s: %w", n, c.d.dev.Name(), err)
	}
	c.l.memoryBudget -= n
	c.regions = append(c.regions, mr)
	return mr, nil
}

// free gives memory of alloc's back, which nothing posted names. An error: the device has it still.
func (c *conn) free(mr *verbs.MR) error {
	n := len(mr.Bytes)
	if err := c.d.dev.Free(mr); err != nil && !c.d.removed {
		return fmt.Errorf("dereg_mr of %d bytes on %s: %w", n, c.d.dev.Name(), err)
	}
	c.regions = slices.DeleteFunc(c.regions, func(other *verbs.MR) bool { return other == mr })
	c.l.memoryBudget += n
	return nil
}

// freeAll gives the rest back, when the queue pair is gone.
func (c *conn) freeAll() {
	for _, mr := range c.regions {
		c.l.memoryBudget += len(mr.Bytes)
		c.d.closed("dereg_mr", c.d.dev.Free(mr))
	}
	c.regions = nil
}
