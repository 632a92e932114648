// Package contest has what package measure compares and needs nothing but this module: actors, the
// verbs level, rdmanet and net/http over it, and what a program does with plain TCP sockets.
package contest
