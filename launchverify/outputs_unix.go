//go:build unix

package launchverify

import (
	"fmt"
	"os"
	"path"
)

// The outputs of a job whose directory is made of its package lie outside of it, where the job's user keeps them.

func (c copyRoot) placeOutputs(root *os.Root, at, outputs string) error {
	if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	return root.Symlink(outputs, at)
}

func (c copyRoot) showOutputs(p *plan, _, outputs string) error {
	err := p.User.identity().do(func() error { return os.MkdirAll(outputs, 0o755) })
	if err != nil {
		return fmt.Errorf("make the folder of the outputs: %w", err)
	}
	return nil
}

// showOutputs lets a job whose directory is made of its package write below <exp>/outputs. Gate 3 has passed by then: a
// refusal leaves no folder behind.
func (s *stage) showOutputs(root privateRoot) error {
	if s.pkg == nil || s.pkg.shown == "" {
		return nil
	}
	return root.showOutputs(&s.plan, s.pkg.shown, string(s.plan.Package.Outputs))
}
