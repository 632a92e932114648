// Package inspect shows a running program in a browser, and to curl: every identifier with its
// state, how long it has been there and how it got there, the loops, memory, listeners and devices,
// and tables of the program's own. It is an http.Handler, and nothing of this module needs it:
//
//	page, err := inspect.New(rt, inspect.Config{})
//	http.Handle("/debug/rdma/", page)
//
// The page is one document, one style sheet and one script, which are part of the program. It needs
// no other host.
//
// # Resources
//
// All are below Config.Path. What ends in no suffix is JSON, or text if the query has format=text
// or the Accept header prefers text/plain. The page itself is at Config.Path, for a browser; other
// clients get the overview there (format=json, format=text).
//
//	ids                the identifiers, paged: below
//	ids/ID             one identifier, by its number or, if it has none yet, by its PID's id
//	loops              the event loops
//	memory             who has how much memory
//	listeners          the listening identifiers, with the connections that they have now
//	devices            the devices that identifiers are attached to
//	flight             what the flight recorders have, the latest first, paged: below
//	actions            what an operator may do, the log's level, and the captures
//	captures/N.pcapng  a capture's file, for those who have the token
//	sections           the tables of Config.Sections: their names and titles
//	sections/NAME      one of them
//	states.svg         the state machine with the number of identifiers in each state;
//	                   flavor is iwarp, ib or ud
//	events             server-sent events: what view (and id, or name) shows, at each Interval
//
// The query of ids: state (names of states, with commas), peer and q (text that the peer's address,
// or any of the texts of a row, contains), sort (a field's name), order (asc or desc), page (from 1)
// and size (rows to a page, at most 500). A page beyond the last is the last. events?view=ids takes
// the same. The query of flight: id (an identifier's number), loop, kind (transition, command, event,
// refusal, end, panic, stall; with commas), q, page and size.
//
// The names of fields are stable, and end in their unit: _seconds, _bytes, _messages. Counts without
// a unit are of what the name says. Texts that a peer or a program has chosen are cut after 512
// bytes; in text output, characters that a terminal would interpret are escaped.
//
// # Who may look
//
// Whoever can reach the handler sees all addresses. It authenticates nobody: put it on a listener
// that only operators reach. A browser of such an operator also runs the scripts of strangers, so:
//
//   - Requests are answered for addresses, localhost, this machine's name and the names of
//     Config.Hosts. A stranger who has a name of his own lead to this machine (DNS rebinding) gets
//     403. Behind a proxy, or where DNS has another name for the machine, Config.Hosts has the name
//     that browsers use.
//   - What scripts and frames of other sites ask for gets 403; a link to the page does not. Browsers
//     say who asks with https and on this machine. Elsewhere such an answer is one that they show to
//     no other site.
//   - Actions (Config.Actions) are off unless they are switched on. Each one needs the token in a
//     header, and so does the file of a capture.
//
// # Ownership
//
// A Page is for any number of goroutines. While nobody asks, it does nothing. All viewers share what
// is read: the runtime is inspected at most once in Config.Interval, however many look. A viewer is
// a request for events: there are at most Config.Viewers, and one whose connection takes nothing for
// 5 s is dropped. Close ends them, so give it to http.Server.RegisterOnShutdown.
//
// However many ask, and however often: answers are made one after the other, so that they take one
// core at most, and at most 16 are on their way, each for 30 s at most. Who finds no room for 2 s
// gets 503.
//
// One capture runs at a time, for 10 minutes at most, and its file is in memory: at most
// Actions.CaptureBytes. The last four are kept until others take their places, or they are deleted.
// Close ends one that runs.
//
// # Ordering
//
// What a viewer gets is of one moment for each loop, and not of the same moment for all of them.
//
// # Errors
//
// A query that makes no sense is answered with 400, an identifier or a section that is not there
// with 404, an action that is not possible now with 409, a viewer or a request too many with 503. A
// section whose function panics, or does not return, is shown with that as its error, and delays
// nobody.
//
// # Limitations
//
// JSON has no NaN and no infinity: these are texts. Browsers round whole numbers above 2^53.
//
// The histories of rates are in the browser, and begin when it begins to look. A capture is of the
// device that Actions.Capture captures, whichever device an identifier has.
package inspect
