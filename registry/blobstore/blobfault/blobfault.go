// Package blobfault makes a real blob store fail: its disk (Disk), the requests to its S3 store (Transport), or its
// back-end (Backend). A Plan says which call fails, and how. It is for tests of whoever relies on a store: fail the first
// call, the second, and so on, until an operation comes through, and look each time at what is there afterwards.
package blobfault

import (
	"fmt"
	"sync"
	"syscall"
)

// Kind is how a call fails.
type Kind uint8

// The kinds. NoSpace, IOError and Kill are for disks and back-ends; those from Reset on, and Kill, for requests.
const (
	None Kind = iota
	NoSpace
	IOError
	// Kill fails the call and every one after it: the process, or the store, has gone.
	Kill
	// Reset cuts the connection before the store has the request.
	Reset
	// LostAnswer lets the store do it and cuts the connection before the answer.
	LostAnswer
	// ErrorIn200 answers with status 200 and an error in the body, and does nothing.
	ErrorIn200
	// SlowDown answers with 503 SlowDown.
	SlowDown
	// Full answers with 507 InsufficientStorage.
	Full
	// Denied answers with 403 AccessDenied.
	Denied
	// CutBody cuts the answer in the middle of its body.
	CutBody
	// ShortBody ends the answer in the middle of its body, as if that were all.
	ShortBody
)

var kindNames = map[Kind]string{
	None: "none", NoSpace: "ENOSPC", IOError: "EIO", Kill: "kill", Reset: "reset", LostAnswer: "lost answer", ErrorIn200: "error in a 200",
	SlowDown: "503", Full: "507", Denied: "403", CutBody: "cut body", ShortBody: "short body",
}

func (k Kind) String() string { return kindNames[k] }

// DiskKinds are those that a disk fails by.
var DiskKinds = []Kind{NoSpace, IOError, Kill}

// Error is what a call of a disk or a back-end that fails gives.
func (k Kind) Error() error {
	switch k {
	case None:
		return nil
	case NoSpace:
		return fmt.Errorf("injected: %w", syscall.ENOSPC)
	}
	return fmt.Errorf("injected %s: %w", k, syscall.EIO)
}

// Plan counts calls and says which one fails. The zero Plan lets all through. It is safe for concurrent use.
type Plan struct {
	mu    sync.Mutex
	left  int // calls before the one that fails
	kind  Kind
	dead  bool
	fired string
}

// Arm lets the n-th call from now, counted from 0, fail by the kind, and forgets what was before.
func (p *Plan) Arm(n int, kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.kind, p.dead, p.fired = n, kind, false, ""
}

// Disarm lets all calls through and gives the name of the one that failed, "" when none did.
func (p *Plan) Disarm() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kind, p.dead = None, false
	return p.fired
}

// next counts a call and gives how it fails.
func (p *Plan) next(name string) Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dead:
		return Kill
	case p.kind == None || p.fired != "":
		return None
	case p.left > 0:
		p.left--
		return None
	}
	p.fired, p.dead = name, p.kind == Kill
	return p.kind
}

// Disk is a fault for blobstore/fs.OpenWith.
func (p *Plan) Disk(op, name string) error { return p.next(op + " " + name).Error() }
