//go:build unix && !linux

package launchverify

// mapNow is for Linux.
const mapNow = 0
