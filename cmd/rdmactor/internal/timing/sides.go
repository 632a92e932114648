package timing

import (
	"context"
	"log/slog"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// Level is the interface through which the connections are made.
type Level string

// The levels.
const (
	Actor Level = "actor" // package actor: an actor for each identifier, on one loop
	CMID  Level = "cmid"  // package cmid: the plain calls, on one event channel
)

// Config is the configuration of a Client or a Server.
type Config struct {
	Driver cmid.Driver
	Level  Level
	// Timeout is the longest time without any event while an answer is due. It is also the time
	// limit of each resolution and connection.
	Timeout time.Duration
	Log     *slog.Logger // of the actors
}

// Plan is one run of a client.
type Plan struct {
	IDs     int
	Connect bool      // if false, identifiers are only made, bound and destroyed
	Local   cmid.Addr // to bind to; port 0 lets the device choose one for each
	Peer    cmid.Addr // to connect to
}

// Client takes identifiers through the steps.
type Client interface {
	// Run makes one run and waits for its end. The Run counts identifiers that failed. An error
	// means that the run did not come to its end. Run returns early when ctx is done.
	Run(ctx context.Context, p Plan) (Run, error)
	// Close frees everything. Its error reports resources that the runs have left.
	Close() error
}

// Server accepts every connection, and waits for its end.
type Server interface {
	// Addr returns the address on which the server listens.
	Addr() cmid.Addr
	// Failed returns a channel that is closed when the listener has failed.
	Failed() <-chan struct{}
	// Idle waits until every connection has ended, but no longer than Config.Timeout. It returns
	// how many are left.
	Idle() (left int)
	// Close closes the listener and every connection. Afterwards Served no longer changes.
	Close() error
	// Served returns the counts of connections so far.
	Served() Served
}

// Served counts a server's connections.
type Served struct {
	Accepted int   // established
	Errors   int   // failed connections
	First    error // why the first one failed
}
