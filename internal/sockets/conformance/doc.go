// Package conformance lists the behaviour of Linux's sockets that package iwarp relies on, as a
// table of facts. The facts are checked on Linux itself, and on simulated machines: a simulation
// that differs from Linux shows nothing.
package conformance
