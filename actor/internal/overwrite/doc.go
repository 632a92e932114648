// Package overwrite finds who uses memory that was given back. In builds with the tag rdmadebug,
// or with the race detector, such memory is overwritten, and looked at when it is handed out
// again: who still reads it reads nonsense (and the race detector says so), who has written it is
// found. Code that looks for other misuse in such builds asks On. In all other builds it costs
// nothing.
package overwrite
