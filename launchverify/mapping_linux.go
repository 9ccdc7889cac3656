package launchverify

import "syscall"

// mapNow has all pages of a view there at once. Where a write meets one that is missing, a file system that lays files out in
// large pages first fills the rest of the page with zeros.
const mapNow = syscall.MAP_POPULATE
