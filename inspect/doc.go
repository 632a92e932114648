// Package inspect shows a running program in a browser, and to curl: every identifier with its
// state, how long it has been there and how it got there, the loops, memory, listeners and devices,
// and tables of the program. It is an http.Handler, and nothing in this module needs it:
//
//	page, err := inspect.New(rt)
//	http.Handle("/debug/rdma/", page)
//
// The page's document, style sheet and scripts are embedded in the program. It needs no other host.
//
// # Resources
//
// All are below Config.Path. Resources without a suffix are JSON, or text if the query has
// format=text or the Accept header prefers text/plain. The page itself is at Config.Path, for a
// browser; other clients get the overview there (format=json, format=text).
//
//	ids                the identifiers, paged: below
//	ids/ID             one identifier, by its number or, if it has none yet, by its PID's id
//	loops              the event loops
//	memory             the use of memory, by owner
//	listeners          the listening identifiers, with the connections that they have now
//	devices            the devices that identifiers are attached to
//	flight             the flight recorders' records, the latest first, paged: below
//	actions            the possible actions, the log's level, and the captures
//	captures/N.pcapng  a capture's file; requires the token
//	sections           the tables of Config.Sections: their names and titles
//	sections/NAME      one of them
//	states.svg         the state machine with the number of identifiers in each state;
//	                   flavor is iwarp, ib or ud
//	events             server-sent events with the content of view (and id, or name), at each Interval
//
// The query of ids: state (names of states, with commas), peer and q (text that the peer's address,
// or any of the texts of a row, contains), sort (a field's name), order (asc or desc), page (from
// 1) and size (rows to a page, at most 500). A page beyond the last is the last. events?view=ids
// takes the same query. The query of flight: id (an identifier's number), loop, kind (transition,
// command, event, refusal, end, panic, stall; with commas), q, page and size.
//
// An identifier's trouble is why an operator should look at it, "" if there is no reason: device
// removed, loop blocked, failed, peer takes nothing (for 1 s), peer is slow (64 messages wait),
// retains memory (while the loop's is short), no answer (for 5 s). Sorted by it in the order desc,
// the worst come first, as on the page.
//
// The names of fields are stable, and end in their unit: _seconds, _bytes, _messages. Counts
// without a unit count the things in their name. Texts chosen by a peer or a program are cut after
// 512 bytes; in text output, characters that a terminal would interpret are escaped.
//
// # Who may look
//
// Every client that can reach the handler sees all addresses. It does not authenticate clients: put
// it on a listener that only operators reach. An operator's browser also runs scripts of other
// sites, so:
//
//   - Requests are answered for addresses, localhost, this machine's name and the names of
//     Config.Hosts. An attacker who makes a name of his point to this machine (DNS rebinding) gets
//     403. Behind a proxy, or where DNS has another name for the machine, Config.Hosts must contain
//     the name that browsers use.
//   - Requests of scripts and frames of other sites get 403; a link to the page does not. With
//     https and on this machine, browsers report the site that asks. Elsewhere browsers do not show
//     the answer to other sites.
//   - Actions (Config.Actions) are off by default. Each one requires the token in a header, and so
//     does the file of a capture.
//
// # Ownership
//
// A Page may be used by any number of goroutines. Without requests it does nothing. All viewers
// share each reading: the runtime is inspected at most once in Config.Interval, whatever their
// number. A viewer is a request for events: there are at most Config.Viewers, and one whose
// connection takes no bytes for 5 s is dropped. Close ends them, so give it to
// http.Server.RegisterOnShutdown.
//
// However many requests arrive, answers are made one after the other, so that they take one core at
// most, and at most 16 are being sent, each for 30 s at most. A request that finds no room for 2 s
// gets 503.
//
// One capture runs at a time, for 10 minutes at most, and its file is in memory: at most
// Actions.CaptureBytes. The last four are kept until others replace them, or they are deleted.
// Close ends a running one.
//
// # Ordering
//
// The figures of one loop are of the same moment, those of different loops are not.
//
// # Errors
//
// An invalid query is answered with 400, an identifier or a section that does not exist with 404,
// an action that is not possible now with 409, a viewer or a request too many with 503. A section
// whose function panics, or does not return, is shown with that as its error, and does not delay
// other requests.
//
// # Limitations
//
// JSON has no NaN and no infinity: these are texts. Browsers round whole numbers above 2^53.
//
// The histories of rates are kept in the browser, and begin when it opens the page. A capture
// records the device that Actions.Capture captures, whichever device an identifier has.
package inspect
