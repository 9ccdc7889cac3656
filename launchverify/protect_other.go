//go:build unix && !linux

package launchverify

import (
	"errors"
	"syscall"
)

// Systems other than Linux have no mount namespaces: the only protection is the private copy.

func protections() []Mode { return nil }

func ownedRoot() string { return "" }

var errNoNamespaces = errors.New("this system has no mount namespaces")

func mountPoint(Mode, string) (string, error) { return "", errNoNamespaces }

func namespaces(*plan) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func unavailable(error) bool { return false }

func whyUnavailable(err error) string { return err.Error() }

func protect(*plan, int64) (privateRoot, error) { return nil, errNoNamespaces }
