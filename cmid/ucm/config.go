package ucm

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// Driver is the kernel's rdma_cm. Any goroutine may Open it.
type Driver struct{ cfg config }

type config struct {
	provider  verbs.Provider // nil: none
	connects  int
	closeWait time.Duration
	node      string // "": where the kernel says it is
}

// Option changes a Driver.
type Option func(*config)

// MaxConnects is how many connects of one loop may be under way off it at once, unless
// WithMaxConnects says otherwise. Those that wait in the kernel have a thread each, of which the
// process has a bounded number; the others wait for one.
const MaxConnects = 1024

// New makes a Driver with the data path of the kernel's software devices. Nothing is opened yet.
func New(opts ...Option) *Driver {
	d := &Driver{config{provider: uverbs.Provider{}, connects: MaxConnects, closeWait: 2 * time.Second}}
	for _, o := range opts {
		o(&d.cfg)
	}
	return d
}

// WithProvider says where queue pairs come from, instead of from uverbs.Provider; nil: there are
// none.
func WithProvider(p verbs.Provider) Option { return func(c *config) { c.provider = p } }

// WithMaxConnects bounds how many connects of one loop may be under way off it at once: from 1 to
// MaxConnects, and what is beyond is taken for these. One more is refused with a *BusyError.
// Destructions do not count: they wait their turn.
func WithMaxConnects(n int) Option {
	return func(c *config) { c.connects = min(max(n, 1), MaxConnects) }
}

// WithNode names the device file, instead of asking the kernel for it.
func WithNode(path string) Option { return func(c *config) { c.node = path } }

// Name is "ucm".
func (d *Driver) Name() string { return "ucm" }

var _ cmid.Driver = (*Driver)(nil)
