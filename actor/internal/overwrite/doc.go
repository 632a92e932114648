// Package overwrite finds uses of memory after its release. In builds with the tag rdmadebug, or
// with the race detector, such memory is overwritten, and checked when it is handed out again: a
// late reader reads nonsense (and the race detector reports it), a late writer is found. Code that
// looks for other misuse in such builds asks On. In all other builds it costs nothing.
package overwrite
