package registry

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// runnerFresh is how long after its last sign of life a runner counts as answering: the clients send one every 15 s.
const runnerFresh = 45 * time.Second

// maxRunnerText bounds an address and a version of a runner, in bytes.
const maxRunnerText = 512

// NewRunner is what AddRunner needs.
type NewRunner struct {
	Address       string // where a job reaches the environment on this machine
	Version       string // the one that it serves, "" for whichever a job asks for
	RunnerVersion string // of the client
}

// Fresh reports whether the runner gave a sign of life lately.
func (r Runner) Fresh(now time.Time) bool { return now.Sub(r.BeatAt) <= runnerFresh }

// AddRunner registers a machine that serves an environment and gives the credential with which it says that it lives, once.
// Who may push to the environment may say who serves it. Errors: Denied, NotFound, Invalid, Conflict when there are
// limit.SuiteRunners.
func (s *Service) AddRunner(ctx context.Context, p auth.Principal, id SuiteID, in NewRunner) (r Runner, credential string, err error) {
	repository, err := s.mayServe(ctx, p, id)
	if err != nil {
		return r, "", err
	}
	if err := checkRunner(in.Address, in.RunnerVersion); err != nil {
		return r, "", err
	}
	now := s.now()
	credential = auth.NewSecret()
	r = Runner{
		ID: "er-" + randomHex(8), Repository: repository, Address: in.Address, Version: in.Version, RunnerVersion: in.RunnerVersion,
		CredentialHash: auth.HashSecret(credential), CreatedBy: p.Account, CreatedAt: now, BeatAt: now,
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		if _, err := s.findSuite(tx, p, id, in.Version); err != nil {
			return err
		}
		have, err := tx.Runners(repository)
		if err != nil {
			return err
		}
		if len(have) >= limit.SuiteRunners {
			return Errorf(Conflict, "environment %s has %d runners, the most that is allowed: remove those that are gone", id, len(have))
		}
		if err := tx.InsertRunner(r); err != nil {
			return err
		}
		return s.audit(tx, p, "runner.add", id.String(), r.ID+" "+r.Address)
	})
	return r, credential, err
}

// mayServe asks for the right to push to an environment. Errors: Denied, NotFound for a name that is none.
func (s *Service) mayServe(ctx context.Context, p auth.Principal, id SuiteID) (repository string, err error) {
	repository, err = id.Repository()
	if err != nil {
		return "", Errorf(NotFound, "environment %.200q does not exist", id.String())
	}
	return repository, s.mayWrite(ctx, p, repository)
}

// checkRunner refuses what is no address of a service. Errors: Invalid.
func checkRunner(address, version string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxRunnerText || len(version) > maxRunnerText:
		return Errorf(Invalid, "address, runner_version: at most %d bytes are allowed", maxRunnerText)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsFunc(address, notASCII):
		return Errorf(Invalid, "address: %.200q is no http or https address with a host", address)
	case u.User != nil:
		return Errorf(Invalid, "address: it must hold no user name and password")
	case u.Fragment != "" || u.RawQuery != "":
		return Errorf(Invalid, "address: it must hold no query and no fragment")
	case strings.ContainsFunc(version, notASCII):
		return Errorf(Invalid, "runner_version: it holds other characters than those of ASCII that print")
	}
	return checkRunnerHost(u.Hostname(), u.Port())
}

// checkRunnerHost refuses what reaches no other machine, and what two readers could take for different ones: some take 2852039166
// for 169.254.169.254. Errors: Invalid.
func checkRunnerHost(host, port string) error {
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return Errorf(Invalid, "address: %.20q is no port", port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
			return Errorf(Invalid, "address: no job reaches %s", ip)
		}
		return nil
	}
	if !hostName.MatchString(host) || endsInNumber.MatchString(host) {
		return Errorf(Invalid, "address: %.100q is neither the name of a host nor an IP address", host)
	}
	return nil
}

// Of hosts' names, those with an underscore too, as networks of containers have them; and of what is taken for an IPv4 address in
// an old form.
var (
	hostName     = pattern.New(`^[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*$`)
	endsInNumber = pattern.New(`(^|\.)([0-9]+|0[xX][0-9A-Fa-f]*)$`)
)

func notASCII(r rune) bool { return r < 0x20 || r > 0x7E }

// BeatRunner records a sign of life, which the runner's own credential allows and no account's: as long as whoever registered
// it is not locked out, since a runner says where jobs go. Errors: Unauthorized, Invalid.
func (s *Service) BeatRunner(ctx context.Context, id, credential, address, runnerVersion string) (Runner, error) {
	refused := &Error{Code: Unauthorized, Message: "the runner is not registered, or not by an account that may still act, or the credential is not its own: register it again"}
	var r Runner
	var out bool
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		if r, err = tx.Runner(id); err == nil {
			out, err = s.lockedOut(tx, r.CreatedBy)
		}
		return err
	})
	hash := auth.HashSecret(credential)
	switch {
	case err != nil && CodeOf(err) != NotFound:
		return r, err
	case err != nil || out || subtle.ConstantTimeCompare(hash[:], r.CredentialHash[:]) != 1:
		return r, refused
	}
	if address == "" {
		address = r.Address
	}
	if err := checkRunner(address, runnerVersion); err != nil {
		return r, err
	}
	r.Address, r.RunnerVersion, r.BeatAt = address, runnerVersion, s.now()
	err = s.meta.Update(ctx, func(tx Tx) error { return tx.BeatRunner(id, address, runnerVersion, r.BeatAt) })
	if CodeOf(err) == NotFound {
		err = refused
	}
	return r, err
}

// Runners lists the machines that serve an environment, those that don't answer any more too, to who may read it.
// Errors: NotFound.
func (s *Service) Runners(ctx context.Context, p auth.Principal, id SuiteID) ([]Runner, error) {
	if err := s.authorize(ctx, p, auth.ReadContent, id.Owner, "environment "+id.String()); err != nil {
		return nil, err
	}
	var list []Runner
	err := s.meta.View(ctx, func(tx Tx) error {
		versions, err := s.readableSuite(tx, p, id)
		if err != nil {
			return err
		}
		list, err = tx.Runners(versions[0].Repository)
		return err
	})
	return list, err
}

// DeleteRunner removes a runner. Errors: Denied; NotFound, also for a runner of an environment that the caller may not read.
func (s *Service) DeleteRunner(ctx context.Context, p auth.Principal, id string) error {
	missing := Errorf(NotFound, "there is no runner %.100q", id)
	var r Runner
	readable := false
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		if r, err = tx.Runner(id); err == nil {
			readable, err = s.canRead(tx, p, r.Repository)
		}
		return err
	})
	switch {
	case CodeOf(err) == NotFound, err == nil && !readable:
		return missing
	case err != nil:
		return err
	}
	if err := s.mayWrite(ctx, p, r.Repository); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.DeleteRunner(id); err != nil {
			return missing
		}
		return s.audit(tx, p, "runner.delete", r.Repository, id)
	})
}

// EnvironmentID names an environment.
func EnvironmentID(owner, name string) SuiteID { return SuiteID{suite.Environment, owner, name} }
