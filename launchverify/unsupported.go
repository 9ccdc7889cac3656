//go:build !unix

package launchverify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
)

// A launch needs process groups and signals, which only Unix systems have.

const noFollow = 0

// LookupUser finds no account on this system.
func LookupUser(string) (User, error) { return User{}, errors.ErrUnsupported }

func ownerOf(string) int { return -1 }

func removeTree(p string) error { return os.RemoveAll(p) }

type identity struct {
	User
	other bool
}

func identify(*User) (identity, error) {
	return identity{}, fmt.Errorf("launching is not supported on %s", runtime.GOOS)
}

func (identity) do(f func() error) error { return f() }

func protections() []Mode { return nil }

func mountPoint(Mode, string) (string, error) { return "", errors.ErrUnsupported }

func ownedRoot() string { return "" }

func (l *launch) stage(context.Context, *plan) (string, error) { return "", errors.ErrUnsupported }

// RunProbe finds nothing on this system.
func RunProbe(context.Context, ProbeOptions) (Probe, error) {
	_, err := identify(nil)
	return Probe{}, err
}

// Stage runs nothing on this system.
func Stage([]string) (handled bool, code int) { return false, 0 }
