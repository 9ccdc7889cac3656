package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/handover"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

// handoverTarget is a platform that admitted jobs go to. One of webhook, command and directory is set.
type handoverTarget struct {
	Name         string        `yaml:"name"`
	Webhook      string        `yaml:"webhook"`
	SecretFile   string        `yaml:"secret_file"`
	CAFile       string        `yaml:"ca_file"`
	InsecureHTTP bool          `yaml:"insecure_http"`
	Command      []string      `yaml:"command"`
	Directory    string        `yaml:"directory"`
	Package      bool          `yaml:"package"`
	Timeout      time.Duration `yaml:"timeout"`
	GiveUp       time.Duration `yaml:"give_up"`
	Parallel     int           `yaml:"parallel"`
}

// handoverFolder is where commands run, below the data directory.
const handoverFolder = "handover"

// The values of what a target does not set, and the longest that one try may take.
const (
	handoverTimeout     = 30 * time.Second
	handoverGiveUp      = 72 * time.Hour
	handoverParallel    = 4
	maxHandoverTimeout  = time.Hour
	maxHandoverParallel = 64
)

// complete is the target with the default of everything that is not set.
func (t handoverTarget) complete() handoverTarget {
	if t.Timeout == 0 {
		t.Timeout = handoverTimeout
	}
	if t.GiveUp == 0 {
		t.GiveUp = handoverGiveUp
	}
	if t.Parallel == 0 {
		t.Parallel = handoverParallel
	}
	return t
}

// shownTargets are targets for people: as they are in force, without passwords in addresses.
func shownTargets(targets []handoverTarget) []handoverTarget {
	shown := make([]handoverTarget, len(targets))
	for i, t := range targets {
		shown[i] = t.complete()
		if t.Webhook != "" {
			shown[i].Webhook = shownAddress(t.Webhook)
		}
	}
	return shown
}

// handover checks the targets, without opening their files.
func (k *checker) handover() {
	seen := map[string]bool{}
	for i, t := range k.c.Handover {
		fault := func(format string, args ...any) { k.fault("handover", fmt.Sprintf("[%d]: ", i)+format, args...) }
		if err := registry.CheckTargetName(t.Name); err != nil {
			fault("%w", err)
		}
		if seen[t.Name] {
			fault("two targets are called %s", t.Name)
		}
		seen[t.Name] = true
		t = t.complete()
		switch {
		case t.Timeout < 0 || t.Timeout > maxHandoverTimeout:
			fault("timeout: at most %s is allowed", maxHandoverTimeout)
		case t.GiveUp < 0:
			fault("give_up: it is negative")
		case t.Parallel < 1 || t.Parallel > maxHandoverParallel:
			fault("parallel: from 1 to %d", maxHandoverParallel)
		}
		if err := t.check(); err != nil {
			fault("%w", err)
		}
	}
}

// check says what is wrong with how a target is reached.
func (t handoverTarget) check() error {
	kinds := 0
	for _, set := range []bool{t.Webhook != "", len(t.Command) > 0, t.Directory != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Errorf("exactly one of webhook, command and directory is needed")
	case t.Webhook == "" && (t.SecretFile != "" || t.CAFile != "" || t.InsecureHTTP):
		return fmt.Errorf("secret_file, ca_file and insecure_http are a webhook's")
	case t.Webhook != "" && t.Package:
		return fmt.Errorf("package: a webhook gets the package's address; bytes go with a command or into a directory")
	case t.Webhook != "" && t.SecretFile == "":
		return fmt.Errorf("secret_file: a webhook needs a secret, so that the platform can tell who calls")
	case len(t.Command) > 0 && !filepath.IsAbs(t.Command[0]):
		return fmt.Errorf("command: %.100q is no absolute path", t.Command[0])
	case t.Directory != "" && !filepath.IsAbs(t.Directory):
		return fmt.Errorf("directory: %.100q is no absolute path", t.Directory)
	case t.Webhook == "":
		return nil
	}
	// The secret is in its file, which is read when the server starts.
	return t.target(strings.Repeat("x", 32)).Check()
}

func (t handoverTarget) target(secret string) webhook.Target {
	return webhook.Target{URL: t.Webhook, InsecureHTTP: t.InsecureHTTP, Secret: secret, CAFile: t.CAFile, Timeout: t.Timeout}
}

// handoverTargets makes the deliverers of the configured targets.
func (c Config) handoverTargets() ([]registry.HandoverTarget, error) {
	targets := make([]registry.HandoverTarget, len(c.Handover))
	for i, t := range c.Handover {
		t = t.complete()
		to, err := c.deliverer(t)
		if err != nil {
			return nil, fmt.Errorf("handover %s: %w", t.Name, err)
		}
		targets[i] = registry.HandoverTarget{Name: t.Name, To: to, Timeout: t.Timeout, GiveUp: t.GiveUp, Parallel: t.Parallel}
	}
	return targets, nil
}

// commandFolder makes the folder in which a target's commands run, and removes what a server that was killed left there. A command
// of that server may still run and write there; what can't be removed for that goes at the next start.
func (c Config) commandFolder(target string) (string, error) {
	folder := filepath.Join(c.path(handoverFolder), target)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	left, err := os.ReadDir(folder)
	for _, e := range left {
		_ = os.RemoveAll(filepath.Join(folder, e.Name()))
	}
	return folder, err
}

func (c Config) deliverer(t handoverTarget) (registry.HandoverDeliverer, error) {
	base := strings.TrimSuffix(c.PublicURL, "/")
	switch {
	case t.Directory != "":
		if info, err := os.Stat(t.Directory); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("directory %s is not there", t.Directory)
		}
		return handover.Directory{Path: t.Directory, Package: t.Package, Base: base}, nil
	case len(t.Command) > 0:
		folder, err := c.commandFolder(t.Name)
		if err != nil {
			return nil, err
		}
		return handover.Command{Args: t.Command, Folder: folder, Package: t.Package, Base: base}, nil
	}
	secret, err := os.ReadFile(t.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	return handover.NewWebhook(t.target(strings.TrimSpace(string(secret))), base)
}
