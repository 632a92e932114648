// Package contest has the contestants for package measure that need no other module: actors, the
// verbs level, rdmanet, net/http over rdmanet, and plain TCP sockets.
package contest
