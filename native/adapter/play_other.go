//go:build !linux

package main

// runPlanAndExit returns false: only Linux has devices.
func runPlanAndExit() bool { return false }
