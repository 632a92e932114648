package timing

import (
	"context"

	"github.com/rdmactor/rdmactor/cmid"
)

// Client takes identifiers through the steps.
type Client interface {
	// Run is one run. What fails with an identifier is counted in the Run; the error says that the
	// run did not come to its end. The caller's goroutine; it returns early when ctx is done.
	Run(ctx context.Context, p Plan) (Run, error)
	// Close frees everything. Its error names what is left of the runs.
	Close() error
}

// Server accepts whoever connects, and waits for the end of the connection.
type Server interface {
	// Addr is where it listens.
	Addr() cmid.Addr
	// Failed is closed when the listener has failed.
	Failed() <-chan struct{}
	// Idle waits until every connection has ended, but no longer than the time limit, and says how
	// many are left.
	Idle() (left int)
	// Close ends it and everything that it has. The counts are complete afterwards.
	Close() error
	// Served are the counts of connections so far.
	Served() Served
}

// Served counts a server's connections.
type Served struct {
	Accepted int   // established
	Errors   int   // that failed
	First    error // why the first did
}
