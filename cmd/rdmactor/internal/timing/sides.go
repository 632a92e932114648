package timing

import (
	"context"
	"log/slog"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// Level says what the connections are made through.
type Level string

// The levels.
const (
	Actor Level = "actor" // package actor: an actor for each identifier, on one loop
	CMID  Level = "cmid"  // package cmid: the plain calls, on one event channel
)

// Config is what both sides need to know.
type Config struct {
	Driver cmid.Driver
	Level  Level
	// Timeout is how long nothing may happen while an answer is due. It is also the deadline of
	// each resolution and connection.
	Timeout time.Duration
	Log     *slog.Logger // of the actors
}

// Plan is one run of a client.
type Plan struct {
	IDs     int
	Connect bool      // else the identifiers are only made, bound and destroyed
	Local   cmid.Addr // to bind to; with port 0 the device chooses one for each
	Peer    cmid.Addr // to connect to
}

// Client takes identifiers through the steps.
type Client interface {
	// Run is one run. What fails with an identifier is counted in the Run; the error says that the
	// run did not come to its end. The caller's goroutine; it returns early when ctx is done.
	Run(ctx context.Context, p Plan) (Run, error)
	// Close frees everything. Its error says what is left of the runs.
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
	// Close ends the listener and every connection. The counts are complete afterwards.
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
