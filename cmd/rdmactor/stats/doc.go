// Package stats measures the running program: the distribution of times, processor time, memory,
// descriptors, and a CPU profile. rdmactor perf and rdmactor time use it, and so does the lab.
//
// The functions may be called from any goroutine. A Times may be used by one goroutine at a time.
package stats
