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
//	sections           the tables of Config.Sections: their names and titles
//	sections/NAME      one of them
//	states.svg         the state machine with the number of identifiers in each state;
//	                   flavor is iwarp, ib or ud
//	events             server-sent events: what view (and id, or name) shows, at each Interval
//
// The query of ids: state (names of states, with commas), peer and q (text that the peer's address,
// or any of the texts of a row, contains), sort (a field's name), order (asc or desc), page (from 1)
// and size (rows to a page, at most 500). A page beyond the last is the last. events?view=ids takes
// the same.
//
// The names of fields are stable, and end in their unit: _seconds, _bytes, _messages. Counts without
// a unit are of what the name says. Texts that a peer or a program has chosen are cut after 512
// bytes; in text output, characters that a terminal would interpret are escaped.
//
// # Ownership
//
// A Page is for any number of goroutines. While nobody asks, it does nothing. All viewers share what
// is read: the runtime is inspected at most once in Config.Interval, however many look. A viewer is
// a request for events: there are at most Config.Viewers, and one whose connection takes nothing for
// 5 s is dropped. Close ends them, so give it to http.Server.RegisterOnShutdown.
//
// # Ordering
//
// What a viewer gets is of one moment for each loop, and not of the same moment for all of them.
//
// # Errors
//
// A query that makes no sense is answered with 400, an identifier or a section that is not there
// with 404, a viewer too many with 503. A section whose function panics, or does not return, is
// shown with that as its error, and delays nobody.
//
// # Limitations
//
// Whoever can reach the handler sees all addresses. It authenticates nobody: put it on a listener
// that only operators reach. Actions (Config.Actions) are off unless they are switched on, and need
// a token. The histories of rates are in the browser, and begin when it begins to look.
package inspect
