//go:build !linux

package main

// playing returns false: only Linux has devices.
func playing() bool { return false }
