// Package stats has what a program reports of itself and of the times that it measures: the
// distribution of times, processor time, memory, descriptors, and a CPU profile. rdmactor perf and
// rdmactor time use it, and so does the lab.
//
// The functions may be called from any goroutine. A Times belongs to one.
package stats
