package actor

import "github.com/rdmactor/rdmactor/eventloop"

// loop is one event loop with what belongs to it: everything here is the loop goroutine's, unless it says otherwise.
type loop struct {
	el    *eventloop.Loop
	boxes *boxes   // the system's; any goroutine
	mail  mailLoop // any goroutine
}
