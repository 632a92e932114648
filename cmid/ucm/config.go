package ucm

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// Config has the options of a Driver. Zero fields have defaults.
type Config struct {
	// Provider makes the queue pairs. nil: uverbs.Provider, the data path of the kernel's software
	// devices.
	Provider verbs.Provider
	// NoProvider disables queue pairs, whatever Provider is.
	NoProvider bool
	// MaxConnects is the number of connects of one loop that may wait in the kernel together:
	// 1,024, which is also the largest value. One more is refused with a *BusyError. Destructions
	// do not count: they wait for their turn.
	MaxConnects int
}

// maxConnects is the largest Config.MaxConnects. Each connect that waits in the kernel occupies a
// thread, of which the process has a bounded number. The others wait for a thread.
const maxConnects = 1024

// Driver is the kernel's rdma_cm. Any goroutine may Open it.
type Driver struct {
	provider  verbs.Provider // nil: none
	connects  int
	closeWait time.Duration
}

// New makes a Driver. Nothing is opened yet.
func New(config ...Config) *Driver {
	cfg := optional.Value(config)
	d := &Driver{provider: cfg.Provider, connects: maxConnects, closeWait: 2 * time.Second}
	switch {
	case cfg.NoProvider:
		d.provider = nil
	case d.provider == nil:
		d.provider = uverbs.Provider{}
	}
	if cfg.MaxConnects > 0 {
		d.connects = min(cfg.MaxConnects, maxConnects)
	}
	return d
}

// Name is "ucm".
func (d *Driver) Name() string { return "ucm" }

var _ cmid.Driver = (*Driver)(nil)
