package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Every use case on content asks one of these first. They are the only place that knows who may do what in which
// repository. What a caller may not do is said before anybody looks whether the repository exists, and a private repository
// that it may not read answers as one that does not exist.

// ErrInsufficientScope is the cause of an Unauthorized error for a bearer token that was made for something else; the
// client asks for another.
var ErrInsufficientScope = errors.New("the bearer token was not made for this")

// ErrInvalidToken is the cause of an Unauthorized error for a bearer token that is not good, or no more.
var ErrInvalidToken = errors.New("the bearer token is not valid")

// ErrExpiredToken is the ErrInvalidToken of a bearer token that this registry made, and whose time is over. Clients send such
// ones to learn that they need another: it is no guess.
var ErrExpiredToken = fmt.Errorf("%w any more: its time is over", ErrInvalidToken)

// UnknownRepository is the answer about a repository that does not exist, or that the caller may not know of.
func UnknownRepository(repository string) *Error {
	return Errorf(NameUnknown, "there is no repository %.300q", repository)
}

// UnknownBlob is the answer about a blob that a repository does not have, or that the caller may not know of.
func UnknownBlob(repository string, d digest.Digest) *Error {
	return Errorf(BlobUnknown, "repository %.300q has no blob %s", repository, d)
}

// accessLookup finds what a repository's row says about the reach of an account. Errors: ErrNameUnknown.
type accessLookup func(repository, account string) (RepositoryAccess, error)

// mayRead answers why the caller may not read a repository's content. Errors: Unauthorized; Denied for what the caller's
// role or scopes do not allow; NameUnknown for a private repository that it must not know of. A repository that does not
// exist is nil: whoever reads it finds nothing.
func (s *Service) mayRead(ctx context.Context, p auth.Principal, repository string) error {
	err := s.checkRead(ctx, p, repository, func(repository, account string) (RepositoryAccess, error) {
		return s.lookAccess(ctx, repository, account)
	})
	if err != nil && CodeOf(err) == Denied {
		s.auditRefusal(ctx, p, string(auth.ReadContent), repository, err)
	}
	return err
}

// mayReadBlob is mayRead for a blob: one that must not be known of is unknown. A node with the grant for a receipt reads what
// that names, by digest, and nothing else.
func (s *Service) mayReadBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) error {
	if p.Launching() != nil {
		return s.checkPinned(ctx, p, repository, Reference{Digest: d})
	}
	err := s.mayRead(ctx, p, repository)
	if errors.Is(err, ErrNameUnknown) {
		return UnknownBlob(repository, d)
	}
	return err
}

// mayReadManifest is mayRead for a manifest.
func (s *Service) mayReadManifest(ctx context.Context, p auth.Principal, repository string, ref Reference) error {
	if p.Launching() != nil {
		return s.checkPinned(ctx, p, repository, ref)
	}
	return s.mayRead(ctx, p, repository)
}

// canRead reports what mayRead answers within a transaction, for what only looks whether it may.
func (s *Service) canRead(tx Tx, p auth.Principal, repository string) (bool, error) {
	err := s.checkRead(context.Background(), p, repository, tx.RepositoryAccess)
	switch CodeOf(err) {
	case "":
		return true, nil
	case Unauthorized, Denied, NameUnknown:
		return false, nil
	}
	return false, err
}

// canMountFrom is canRead for the source of a mount. Clients fetch a bearer token for the repository that they push to, and
// name no source when they ask for any: what every account may read, the account behind such a token may mount too.
func (s *Service) canMountFrom(tx Tx, p auth.Principal, source string) (bool, error) {
	ok, err := s.canRead(tx, p, source)
	if ok || err != nil || p.Grant == nil {
		return ok, err
	}
	access, err := tx.RepositoryAccess(source, p.Namespace())
	if errors.Is(err, ErrNameUnknown) || access.Private {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.Grant = nil
	return s.canRead(tx, p, source)
}

func (s *Service) checkRead(ctx context.Context, p auth.Principal, repository string, look accessLookup) error {
	if p.Anonymous() {
		return s.checkAnonymous(p, repository, look)
	}
	if err := s.authorize(ctx, p, auth.ReadContent, "", repository); err != nil {
		return err
	}
	if err := s.checkBounds(p, auth.Pull, repository); err != nil {
		return err
	}
	access, err := look(repository, p.Namespace())
	if errors.Is(err, ErrNameUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	if access.Private && !access.Listed && access.Owner != p.Namespace() && !p.Can(auth.ReadPrivate) {
		return UnknownRepository(repository)
	}
	return nil
}

// checkAnonymous lets nobody in particular read what a setting opens. Whatever is not open asks for a sign-in, whether it
// exists or not: a client that has credentials then sends them.
func (s *Service) checkAnonymous(p auth.Principal, repository string, look accessLookup) error {
	if !p.Granted(auth.Pull, repository) {
		return &Error{Code: Unauthorized, Err: ErrInsufficientScope}
	}
	if !auth.MatchAny(s.set.AnonymousRead, repository) {
		return &Error{Code: Unauthorized}
	}
	access, err := look(repository, "")
	if errors.Is(err, ErrNameUnknown) || err == nil && access.Private {
		return &Error{Code: Unauthorized}
	}
	return err
}

// checkBounds holds a robot to its scopes and a bearer token to what it was made for. Both are told from the name alone.
func (s *Service) checkBounds(p auth.Principal, v auth.Verb, repository string) error {
	switch {
	case !p.InScope(v, repository):
		return Errorf(Denied, "robot %s may not %s %s: none of its scopes allows it", p.Account, v, Shown(repository))
	case !p.Granted(v, repository):
		return &Error{Code: Unauthorized, Message: fmt.Sprintf("the bearer token does not allow to %s %s", v, Shown(repository)), Err: ErrInsufficientScope}
	}
	return nil
}

// mayWrite checks the repository's name and the right to push there. Errors: NameInvalid, Unauthorized, Denied.
func (s *Service) mayWrite(ctx context.Context, p auth.Principal, repository string) error {
	if err := CheckRepositoryName(repository); err != nil {
		return err
	}
	return s.mayChange(ctx, p, auth.Push, repository)
}

// mayDelete answers why the caller may not delete content that is no pack's version. Errors: Unauthorized, Denied.
func (s *Service) mayDelete(ctx context.Context, p auth.Principal, repository string) error {
	return s.mayChange(ctx, p, auth.Delete, repository)
}

func (s *Service) mayChange(ctx context.Context, p auth.Principal, v auth.Verb, repository string) error {
	a, owner := actionOf[v], Owner(repository)
	if p.Can(a) && !p.Can(auth.AnyNamespace) { // else the owner changes nothing
		found, err := s.lookOwner(ctx, repository)
		if err != nil {
			return err
		}
		owner = found
	}
	if err := s.authorize(ctx, p, a, owner, repository); err != nil {
		return err
	}
	err := s.checkBounds(p, v, repository)
	if CodeOf(err) == Denied {
		s.auditRefusal(ctx, p, string(a), repository, err)
	}
	return err
}

// mayShare answers why the caller may not decide who reads a repository. Errors: NameInvalid, Unauthorized, Denied.
func (s *Service) mayShare(ctx context.Context, p auth.Principal, repository string) error {
	if err := CheckRepositoryName(repository); err != nil {
		return err
	}
	owner, err := s.lookOwner(ctx, repository)
	if err != nil {
		return err
	}
	return s.authorize(ctx, p, auth.ManageAccess, owner, repository)
}

// actionOf is what a role must allow for a verb.
var actionOf = map[auth.Verb]auth.Action{auth.Pull: auth.ReadContent, auth.Push: auth.WriteContent, auth.Delete: auth.DeleteContent}

// allowedVerbs are those of the asked verbs that the principal may do.
func (s *Service) allowedVerbs(ctx context.Context, p auth.Principal, asked auth.Scope) ([]auth.Verb, error) {
	if p.Anonymous() {
		if slices.Contains(asked.Actions, auth.Pull) && auth.MatchAny(s.set.AnonymousRead, asked.Repository) {
			return []auth.Verb{auth.Pull}, nil
		}
		return nil, nil
	}
	owner, err := s.lookOwner(ctx, asked.Repository)
	if err != nil {
		return nil, err
	}
	var verbs []auth.Verb
	for _, v := range asked.Actions {
		if p.CanIn(actionOf[v], owner) && p.InScope(v, asked.Repository) {
			verbs = append(verbs, v)
		}
	}
	return verbs, nil
}

// MayPush reports, as an error, why the principal may not push to the repository, before a body is read.
// Errors: NameInvalid, Unauthorized, Denied.
func (s *Service) MayPush(ctx context.Context, p auth.Principal, repository string) error {
	return s.mayWrite(ctx, p, repository)
}

// ownerOf is the account that a repository belongs to: the one in its row; before it has one, whom an administrator gave
// the name to, else the account that its first component names.
func ownerOf(tx Tx, repository string) (string, error) {
	access, err := tx.RepositoryAccess(repository, "")
	if err == nil || !errors.Is(err, ErrNameUnknown) {
		return access.Owner, err
	}
	n, err := tx.NamespaceOf(patternsOf(repository))
	if errors.Is(err, ErrNotFound) {
		return Owner(repository), nil
	}
	return n.Owner, err
}

// patternsOf are the patterns that name a repository, the closest first: a/b/c, a/b/*, a/b/**, a/**, **.
func patternsOf(repository string) []string {
	patterns := []string{repository}
	if i := strings.LastIndexByte(repository, '/'); i > 0 {
		patterns = append(patterns, repository[:i]+"/*")
	}
	for prefix := repository; ; {
		i := strings.LastIndexByte(prefix, '/')
		if i < 0 {
			return append(patterns, "**")
		}
		prefix = prefix[:i]
		patterns = append(patterns, prefix+"/**")
	}
}

// hidden are the pack repositories that a list for the caller leaves out.
func (s *Service) hidden(tx Tx, p auth.Principal) (map[string]bool, error) {
	if p.Can(auth.ReadPrivate) {
		return nil, nil
	}
	names, err := tx.HiddenPacks(p.Namespace())
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out, err
}

// knownAccess is what is known of a name: who owns the repository and whether it is private; absent means that there is none,
// and owner who would own it.
type knownAccess struct {
	owner           string
	private, absent bool
}

func (s *Service) lookAccess(ctx context.Context, repository, account string) (RepositoryAccess, error) {
	c, err := s.knownAccess(ctx, repository)
	if err != nil {
		return RepositoryAccess{}, err
	}
	if !c.absent && (!c.private || c.owner == account) {
		return RepositoryAccess{Owner: c.owner, Private: c.private}, nil
	}
	// A repository that is private and one that is absent take the same time.
	var access RepositoryAccess
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		access, err = tx.RepositoryAccess(repository, account)
		return err
	})
	return access, err
}

func (s *Service) lookOwner(ctx context.Context, repository string) (string, error) {
	c, err := s.knownAccess(ctx, repository)
	return c.owner, err
}

// knownAccess answers from memory while it is true: it is asked at every request.
func (s *Service) knownAccess(ctx context.Context, repository string) (knownAccess, error) {
	return cached(ctx, s, rowKey{kind: accessRow, a: repository}, func(c knownAccess) int { return len(c.owner) }, func(tx Tx) (knownAccess, error) {
		access, err := tx.RepositoryAccess(repository, "")
		c := knownAccess{owner: access.Owner, private: access.Private}
		if errors.Is(err, ErrNameUnknown) {
			c.absent = true
			c.owner, err = ownerOf(tx, repository)
		}
		return c, err
	})
}
