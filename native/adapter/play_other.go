//go:build !linux

package main

// playing is for Linux: there are no devices elsewhere.
func playing() bool { return false }
