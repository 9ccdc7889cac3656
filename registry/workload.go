package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// WorkloadVerifier reads the identity documents that a platform gives to its programs: JWTs of OpenID issuers.
type WorkloadVerifier interface {
	// Verify checks a document's signature, issuer, audience and times. Errors: Unauthorized for what is no valid document
	// of a configured issuer; Unavailable when its issuer can't be asked for its keys.
	Verify(ctx context.Context, document string) (Workload, error)
}

// Workload is what a verified identity document says.
type Workload struct {
	Issuer string
	Claims map[string]any // as JSON decodes them
}

// WorkloadRule lets the programs whose documents fit act as a robot, for a while.
type WorkloadRule struct {
	Issuer string
	Claims map[string]string // by name of the claim, a pattern in which * stands for any text; all must fit
	Robot  string            // owner+name
	TTL    time.Duration     // of the token; 0 is DefaultWorkloadTTL
}

// How long the token lives that a program gets for its identity document.
const (
	DefaultWorkloadTTL = 15 * time.Minute
	MaxWorkloadTTL     = 12 * time.Hour
)

// Check refuses a rule that can't be meant: one without claims fits every program of its issuer.
func (r WorkloadRule) Check() error {
	var faults []error
	if !isRobot(r.Robot) {
		faults = append(faults, fmt.Errorf("robot: %.140q is no robot (owner+name)", r.Robot))
	}
	if len(r.Claims) == 0 {
		faults = append(faults, errors.New("claims: at least one is needed, such as sub"))
	}
	for name, pattern := range r.Claims {
		if strings.Trim(pattern, "*") == "" {
			faults = append(faults, fmt.Errorf("claims.%s: %q fits everything; name what it must be", name, pattern))
		}
	}
	if r.TTL < 0 || r.TTL > MaxWorkloadTTL {
		faults = append(faults, fmt.Errorf("ttl: %s is not between 0 and %s", r.TTL, MaxWorkloadTTL))
	}
	return errors.Join(faults...)
}

// fits reports whether every claim of the rule is one of the workload's.
func (r WorkloadRule) fits(w Workload) bool {
	if r.Issuer != w.Issuer || len(r.Claims) == 0 {
		return false
	}
	for name, pattern := range r.Claims {
		if !claimFits(pattern, w.Claims[name]) {
			return false
		}
	}
	return true
}

// claimFits compares a claim with a pattern: a text, a boolean, or a list of texts of which one must fit.
func claimFits(pattern string, claim any) bool {
	switch v := claim.(type) {
	case string:
		return globMatch(pattern, v)
	case bool:
		return pattern == fmt.Sprint(v)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool {
			text, ok := e.(string)
			return ok && globMatch(pattern, text)
		})
	}
	return false
}

// globMatch reports whether text is the pattern with any texts in the place of its stars.
func globMatch(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// ExchangeWorkload gives a program a token of the robot that the first fitting rule names. Errors: Unauthorized for a
// document that is not valid, Denied when no rule fits or the robot is out, Unavailable when the issuer can't be asked.
func (s *Service) ExchangeWorkload(ctx context.Context, document string) (secret string, t Token, err error) {
	caller := nobody(ctx)
	if s.workloads == nil {
		return "", t, Errorf(Denied, "this registry accepts no identity documents of programs (workload_identity is not set)")
	}
	w, err := s.workloads.Verify(ctx, document)
	if err != nil {
		if CodeOf(err) == Unauthorized {
			s.auditRefusal(ctx, caller, "token.exchange", "", err)
		}
		return "", t, err
	}
	subject := fmt.Sprintf("%v at %s", w.Claims["sub"], w.Issuer)
	i := slices.IndexFunc(s.set.Workloads, func(r WorkloadRule) bool { return r.fits(w) })
	if i < 0 {
		err := Errorf(Denied, "no rule of workload_identity fits this document of %s", Shown(subject))
		s.auditRefusal(ctx, caller, "token.exchange", subject, err)
		return "", t, err
	}
	rule := s.set.Workloads[i]
	secret, t, err = s.exchange(ctx, caller, rule, subject)
	if CodeOf(err) == Denied {
		s.auditRefusal(ctx, caller, "token.exchange", subject, err)
	}
	return secret, t, err
}

func (s *Service) exchange(ctx context.Context, caller auth.Principal, rule WorkloadRule, subject string) (secret string, t Token, err error) {
	ttl := rule.TTL
	if ttl == 0 {
		ttl = DefaultWorkloadTTL
	}
	secret = auth.NewSecret()
	label := "workload " + subject
	err = s.meta.Update(ctx, func(tx Tx) error {
		robot, err := tx.Robot(rule.Robot)
		if errors.Is(err, ErrNotFound) {
			return Errorf(Denied, "robot %s, which the rule names, does not exist", rule.Robot)
		}
		if err != nil {
			return err
		}
		left := robot.ExpiresAt.Sub(s.now())
		if left <= 0 {
			return Errorf(Denied, "robot %s, which the rule names, has expired", rule.Robot)
		}
		if t, err = s.insertToken(tx, robot.Name, Shown(label[:min(len(label), maxText)]), secret, min(ttl, left)); err != nil {
			return err
		}
		p := caller
		p.Account = robot.Name
		return s.audit(tx, p, "token.exchange", robot.Name, t.ID+" for "+subject)
	})
	return secret, t, err
}
