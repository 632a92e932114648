package timing

import (
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
	// Timeout is how long nothing may happen while an answer is due; it is also the deadline of
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
