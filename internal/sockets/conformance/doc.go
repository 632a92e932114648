// Package conformance is what package iwarp relies on of Linux's sockets, as a table of facts. The
// facts are checked on Linux itself, and on simulated machines: a simulation that differs from
// Linux shows nothing.
package conformance
