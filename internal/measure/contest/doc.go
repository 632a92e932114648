// Package contest has those contestants of package measure that need nothing but this module:
// actors, the verbs level, rdmanet and net/http over it, and plain TCP sockets.
package contest
