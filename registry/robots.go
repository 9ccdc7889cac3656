package registry

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// robotSeparator stands between a robot's owner and its own name. No account's name has one.
const robotSeparator = "+"

// maxRobotName is the longest name of a robot without its owner, in bytes.
const maxRobotName = 64

// OwnNamespace is the owner whose repositories are an account's own: for a robot, the account that it acts for.
func OwnNamespace(account string) string {
	owner, _, _ := strings.Cut(account, robotSeparator)
	return owner
}

// isRobot reports whether an account's name is that of a robot.
func isRobot(account string) bool {
	owner, own, ok := strings.Cut(account, robotSeparator)
	return ok && name.IsComponent(owner) && name.IsComponent(own)
}

// isMachine reports whether an account's name is that of a robot or a node, as which no person signs in.
func isMachine(account string) bool { return isRobot(account) || isNode(account) }

// NewRobot is what CreateRobot needs.
type NewRobot struct {
	Owner       string // "" is the caller
	Name        string // without the owner
	Description string
	Scopes      []auth.Scope
	TTL         time.Duration // at most Settings.RobotTTL; a robot always expires
}

// CreateRobot makes a robot and gives its secret, once. Its owner makes it, or an administrator for anybody. A robot may do
// what its scopes allow and its owner may, never more. Errors: Denied, Invalid, NotFound, Conflict.
func (s *Service) CreateRobot(ctx context.Context, p auth.Principal, in NewRobot) (secret string, r Robot, err error) {
	if in.Owner == "" {
		in.Owner = p.Namespace()
	}
	if err := s.mayManageRobots(ctx, p, in.Owner); err != nil {
		return "", r, err
	}
	if err := s.checkRobot(in); err != nil {
		return "", r, err
	}
	now := s.now()
	r = Robot{
		Name: in.Owner + robotSeparator + in.Name, Owner: in.Owner, Description: in.Description, Scopes: in.Scopes,
		CreatedBy: p.Account, CreatedAt: now, ExpiresAt: now.Add(in.TTL),
	}
	secret = auth.NewSecret()
	err = s.meta.Update(ctx, func(tx Tx) error {
		if err := s.insertRobot(tx, p, r, secret, in.TTL); err != nil {
			return err
		}
		return s.audit(tx, p, "robot.create", r.Name, scopesText(r.Scopes)+" until "+r.ExpiresAt.UTC().Format(time.RFC3339))
	})
	return secret, r, err
}

// insertRobot writes a robot with its account and its one token.
func (s *Service) insertRobot(tx Tx, p auth.Principal, r Robot, secret string, ttl time.Duration) error {
	owner, err := tx.Account(r.Owner)
	switch {
	case err != nil:
		return notFound(err, "account %.100q does not exist", r.Owner)
	case isMachine(r.Owner):
		return Errorf(Invalid, "owner: %.140q is a robot or a node", r.Owner)
	case owner.Disabled:
		return Errorf(Conflict, "account %s is disabled", r.Owner)
	}
	if ttl, err = s.boundedTTL(tx, p, ttl); err != nil {
		return err
	}
	if err := tx.InsertAccount(Account{Name: r.Name, Role: owner.Role, CreatedAt: r.CreatedAt}); err != nil {
		if errors.Is(err, ErrConflict) {
			return Errorf(Conflict, "robot %s exists", r.Name)
		}
		return err
	}
	if err := tx.InsertRobot(r); err != nil {
		return err
	}
	_, err = s.insertToken(tx, r.Name, "robot", secret, ttl)
	return err
}

// checkRobot refuses what no robot can be, with Invalid.
func (s *Service) checkRobot(in NewRobot) error {
	switch {
	case len(in.Name) > maxRobotName || !name.IsComponent(in.Name):
		return Errorf(Invalid, "name: %.100q is no robot's name: lower-case letters and digits with single . _ - between them, at most %d", in.Name, maxRobotName)
	case len(in.Description) > maxText:
		return Errorf(Invalid, "description: %d bytes, at most %d are allowed", len(in.Description), maxText)
	case in.TTL <= 0 || in.TTL > s.set.RobotTTL:
		return Errorf(Invalid, "expires_in: a robot lives between 1 and %d seconds, found %d", int64(s.set.RobotTTL/time.Second), int64(in.TTL/time.Second))
	}
	if err := auth.CheckScopes(in.Scopes); err != nil {
		return Errorf(Invalid, "%w", err)
	}
	return nil
}

func (s *Service) mayManageRobots(ctx context.Context, p auth.Principal, owner string) error {
	return s.authorize(ctx, p, auth.ManageAccess, owner, "robots of "+owner)
}

// scopesText is a list of scopes in words.
func scopesText(scopes []auth.Scope) string {
	words := make([]string, len(scopes))
	for i, sc := range scopes {
		words[i] = RepositoryScope(sc.Repository, sc.Actions...)
	}
	return strings.Join(words, " ")
}

// Robots lists the robots of an owner by name; "" means of all owners, for administrators. Errors: Denied.
func (s *Service) Robots(ctx context.Context, p auth.Principal, owner string) ([]Robot, error) {
	if err := s.mayManageRobots(ctx, p, owner); err != nil {
		return nil, err
	}
	var list []Robot
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = tx.Robots(owner)
		return err
	})
	return list, err
}

// DeleteRobot ends a robot with all its tokens. Errors: Denied, NotFound.
func (s *Service) DeleteRobot(ctx context.Context, p auth.Principal, robot string) error {
	owner, _, _ := strings.Cut(robot, robotSeparator)
	if err := s.mayManageRobots(ctx, p, owner); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.DeleteRobot(robot); err != nil {
			return notFound(err, "robot %.140q does not exist", robot)
		}
		return s.audit(tx, p, "robot.delete", robot, "")
	})
}
